package scenario

import (
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
)

// TestFailures: what is lost is sent again, ways around a dead link or switch are
// found, a slow host holds its senders back, and calls to a dead one go to another.
// All that began ends, in a time that the fault and the timeouts bound.
func TestFailures(t *testing.T) {
	const ack = 2100 * des.Microsecond // timeout of queue pairs: 4.096 us * 2^9
	for _, tt := range []struct {
		name, class string
		most        des.Time // that anything takes
		shows       []string // counters that tell that the fault was there
	}{
		{"failure-loss", "message", 3 * ack, []string{"lost_packets", "retransmitted_packets"}},
		{"failure-flap", "push", 2*des.Millisecond + 3*ack, []string{"lost_packets", "retransmitted_packets"}},
		{"failure-switch", "push", 3 * ack, []string{"lost_packets", "retransmitted_packets"}},
		{"failure-slow", "message", 8 * des.Millisecond, []string{"credit_stalls"}},
		{"failure-link", "message", 3*des.Millisecond + 2*ack, []string{"lost_packets", "retransmitted_packets"}},
		{"failure-crash", "fetch", 2*des.Millisecond + ack, []string{"retries"}},
	} {
		s := load(t, tt.name)
		if err := s.Pick([]string{"adaptive"}); err != nil {
			t.Fatal(err)
		}
		if !full() {
			if err := s.SetDuration(s.Duration.time() / 2); err != nil {
				t.Fatal(err)
			}
		}
		r := runAll(t, s)[0]
		if c := r.Class(tt.class); c.Unfinished > 0 || c.Count == 0 || c.MaxNS > int64(tt.most/des.Nanosecond) {
			t.Errorf("%s: %d of class %s, %d did not end; the slowest took %d ns, want %d at most", tt.name, c.Count, tt.class, c.Unfinished, c.MaxNS, tt.most/des.Nanosecond)
		}
		for _, name := range tt.shows {
			if r.Counter(name) == 0 {
				t.Errorf("%s: %s is 0: the test shows nothing", tt.name, name)
			}
		}
	}
}

// TestSlowMemory: a NIC that cannot write to memory as fast as frames come pauses its
// link, and nothing is dropped.
func TestSlowMemory(t *testing.T) {
	s := load(t, "incast")
	host := 0
	s.Faults = []Fault{{Kind: slowMemoryFault, Host: &host, Gbps: 10}}
	if err := s.Pick([]string{"dcqcn"}); err != nil {
		t.Fatal(err)
	}
	r := runAll(t, s)[0]
	if r.Counter("pauses") == 0 || r.Counter("dropped_packets") > 0 || r.GoodputMbps > 10_000 || r.GoodputMbps < 8000 {
		t.Errorf("%d pauses, %d drops, %d Mb/s", r.Counter("pauses"), r.Counter("dropped_packets"), r.GoodputMbps)
	}
}

// TestStuckPause: a NIC that pauses its link for no reason stops what goes to it, and
// the rest goes on when it is over.
func TestStuckPause(t *testing.T) {
	s := load(t, "failure-link")
	host := 0
	s.Faults = []Fault{{At: Span(2 * des.Millisecond), Until: Span(3 * des.Millisecond), Kind: stuckFault, Host: &host}}
	if err := s.Pick([]string{"static"}); err != nil {
		t.Fatal(err)
	}
	r := runAll(t, s)[0]
	c := r.Class("message")
	if c.Unfinished > 0 || c.MaxNS < int64(des.Millisecond/des.Nanosecond) || c.MaxNS > 2*int64(des.Millisecond/des.Nanosecond) || r.Counter("dropped_packets") > 0 {
		t.Errorf("%d unfinished, the slowest took %d ns, %d drops", c.Unfinished, c.MaxNS, r.Counter("dropped_packets"))
	}
}
