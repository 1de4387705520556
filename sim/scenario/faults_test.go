package scenario

import (
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
)

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

// TestCrashWithoutEngine: what has no engine loses its peer, too, when that crashes.
func TestCrashWithoutEngine(t *testing.T) {
	for _, transport := range []string{rcTransport, udTransport} {
		s := load(t, "incast")
		host := 0
		s.Variants = []Variant{{Name: transport, Transport: transport}}
		if err := s.SetDuration(2 * des.Millisecond); err != nil {
			t.Fatal(err)
		}
		s.Faults = []Fault{{At: Span(des.Millisecond), Kind: crashFault, Host: &host}}
		if c := runAll(t, s)[0].Class("message"); c.Count == 0 || c.Unfinished == 0 {
			t.Errorf("%s: %d messages, %d did not end", transport, c.Count, c.Unfinished)
		}
	}
}
