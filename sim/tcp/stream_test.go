package tcp

import (
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

func star(t testing.TB, fc fabric.Config, cfg Config, hosts int, l fabric.Link) *Net {
	t.Helper()
	f, err := fabric.Single(fc, hosts, l)
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(f, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func runTo(t testing.TB, n *Net, until des.Time) {
	t.Helper()
	if err := n.k.Run(until); err != nil {
		t.Fatal(err)
	}
	if c := n.f.Counts(); !c.Conserved() {
		t.Errorf("at %d ps packets: %+v", n.k.Now(), c)
	}
}

// free is a processor that takes no time.
var free hostcpu.TCPCosts

// cable is a link in a rack.
var cable = fabric.Link{Gbps: 100, Delay: 10 * des.Nanosecond}

// stream keeps two messages of size bytes queued from a on.
func stream(a *Conn, size int) {
	a.OnAcked = func(Message) { a.Send(size, 0) }
	a.Send(size, 0)
	a.Send(size, 0)
}

// TestHostCost holds one connection's throughput, on one core, and the time of a
// message of 2 KB one way to values of the literature: 42 Gb/s and 25 us, within 15 %.
func TestHostCost(t *testing.T) {
	n := star(t, fabric.Config{Seed: 1}, Config{Cores: 1}, 2, cable)
	a, b := n.Dial(0, 1)
	got := 0
	b.OnMessage = func(m Message) { got += m.Size }
	stream(a, 1<<20)
	runTo(t, n, 10*des.Millisecond)
	before := got
	runTo(t, n, 60*des.Millisecond)
	gbps := float64(got-before) * 8 / 50e6
	t.Logf("one core: %.1f Gb/s, literature 42", gbps)
	if gbps < 42*0.85 || gbps > 42*1.15 {
		t.Errorf("one core: %.1f Gb/s, want 42 within 15 %%", gbps)
	}

	n = star(t, fabric.Config{Seed: 1}, Config{}, 2, cable)
	a, b = n.Dial(0, 1)
	const trips = 100
	left := 2 * trips
	var end des.Time
	for _, c := range []*Conn{a, b} {
		c.OnMessage = func(m Message) {
			if left--; left > 0 {
				c.Send(2048, 0)
			} else {
				end = n.k.Now()
			}
		}
	}
	a.Send(2048, 0)
	runTo(t, n, des.Second)
	us := float64(end) / (2 * trips) / float64(des.Microsecond)
	t.Logf("2 KB one way: %.1f us, literature 25", us)
	if us < 25*0.85 || us > 25*1.15 {
		t.Errorf("2 KB one way: %.1f us, want 25 within 15 %%", us)
	}
}

// TestDelivery: whatever the network loses, every message arrives once, whole, in
// order, both ways, and nothing is left.
func TestDelivery(t *testing.T) {
	for _, control := range []Control{Cubic, DCTCP, Reno} {
		for seed := range uint64(4) {
			loss := []float64{0, 0.001, 0.02, 0.2}[seed]
			n := star(t, fabric.Config{Seed: seed}, Config{Control: control, MinRTO: 5 * des.Millisecond}, 3, fabric.Link{Gbps: 10, Delay: des.Microsecond, Loss: loss})
			sizes := []int{1, 1460, 1461, 20_000, 65_536, 3_000_000, 7, 100_000}
			var ends []*Conn
			for _, p := range [][2]int{{0, 1}, {2, 1}, {0, 1}} {
				a, b := n.Dial(p[0], p[1])
				ends = append(ends, a, b)
			}
			for i, c := range ends {
				got, acked := 0, 0
				c.OnMessage = func(m Message) {
					if m.Size != sizes[got%len(sizes)] || m.Tag != uint64(got) {
						t.Errorf("end %d: message %d has %d bytes and tag %d", i, got, m.Size, m.Tag)
					}
					got++
				}
				c.OnAcked = func(m Message) { acked++ }
				for k := range 2 * len(sizes) {
					c.Send(sizes[k%len(sizes)], uint64(k))
				}
				defer func() {
					if got != 2*len(sizes) || acked != 2*len(sizes) {
						t.Errorf("%v, seed %d, end %d: %d messages came, %d were acknowledged of %d", control, seed, i, got, acked, 2*len(sizes))
					}
				}()
			}
			runTo(t, n, des.Never)
			s := n.Stats()
			if loss == 0 && s.Recoveries+s.Retransmits-s.Timeouts > 0 || loss > 0 && s.Retransmits == 0 {
				t.Errorf("%v, loss %v: %+v", control, loss, s)
			}
			for _, c := range ends {
				if c.una != c.next || c.next != c.written || c.pipe() != 0 || c.sacked != 0 || c.lost != 0 || len(c.out) != 0 || len(c.beyond) != 0 || c.received != c.taken {
					t.Errorf("%v, loss %v: an end is left with %+v %+v", control, loss, c.sender, c.receiver)
				}
			}
			if c := n.f.Counts(); c.Queued != 0 || n.f.Switch(0).HeldBytes() != 0 {
				t.Errorf("left in the network: %+v, %d bytes", c, n.f.Switch(0).HeldBytes())
			}
			t.Logf("%v, loss %v: %+v, %v", control, loss, s, n.k.Now().Duration())
		}
	}
}
