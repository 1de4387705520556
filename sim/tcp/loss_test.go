package tcp

import (
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// cut loses all that a host's link carries in a span of time.
func cut(n *Net, host int, from, to des.Time) {
	h := n.f.Host(host)
	kind := n.k.Handle(func(a, _ int32) { h.SetLoss(float64(a)) })
	n.k.At(from, kind, 1, 0)
	n.k.At(to, kind, 0, 0)
}

// oneMessage sends a message at a time over a connection that has had one before, and
// gives the time until it has come.
func oneMessage(t *testing.T, cfg Config, size int, from, to des.Time) (took des.Time, s Stats) {
	t.Helper()
	cfg.Costs = &free
	n := star(t, fabric.Config{Seed: 1}, cfg, 2, fabric.Link{Gbps: 10, Delay: 10 * des.Microsecond})
	a, b := n.Dial(0, 1)
	a.Send(100_000, 0)
	const begin = 100 * des.Millisecond
	runTo(t, n, begin)
	b.OnMessage = func(Message) { took = n.k.Now() - begin }
	cut(n, 0, begin+from, begin+to)
	a.Send(size, 1)
	runTo(t, n, des.Never)
	return took, n.Stats()
}

// TestRecovery: what is lost in the middle of a message is sent again a round trip
// later; its end when a probe shows that it is missing, long before the timeout; all
// of it after the timeout.
func TestRecovery(t *testing.T) {
	us := des.Microsecond
	clean, s := oneMessage(t, Config{KeepWindow: true}, 60_000, 0, 0)
	if s.Retransmits+s.Timeouts+s.Recoveries != 0 {
		t.Errorf("without loss: %+v", s)
	}
	middle, s := oneMessage(t, Config{KeepWindow: true}, 60_000, 10*us, 12*us)
	if s.Recoveries != 1 || s.Timeouts != 0 || middle > clean+150*us || middle <= clean {
		t.Errorf("a loss in the middle: %v instead of %v, %+v", middle.Duration(), clean.Duration(), s)
	}
	end, s := oneMessage(t, Config{KeepWindow: true}, 60_000, 40*us, 60*us)
	if s.Probes == 0 || s.Timeouts != 0 || end < 2*des.Millisecond || end > 3*des.Millisecond {
		t.Errorf("a loss of the end: %v, %+v", end.Duration(), s)
	}
	all, s := oneMessage(t, Config{KeepWindow: true}, 60_000, 0, 20*des.Millisecond)
	if s.Timeouts == 0 || all < 200*des.Millisecond || all > 210*des.Millisecond {
		t.Errorf("a loss of all, and of the probe: %v, %+v", all.Duration(), s)
	}
	tuned, s := oneMessage(t, Config{KeepWindow: true, MinRTO: 5 * des.Millisecond}, 60_000, 0, 4*des.Millisecond)
	if s.Timeouts == 0 || tuned < 5*des.Millisecond || tuned > 10*des.Millisecond {
		t.Errorf("the same for 4 ms with a timeout of 5 ms: %v, %+v", tuned.Duration(), s)
	}
	t.Logf("60 KB: %v; a loss in the middle %v, of the end %v, of all %v, with a timeout of 5 ms %v", clean.Duration(), middle.Duration(), end.Duration(), all.Duration(), tuned.Duration())
}

// TestIdle: after idle times the window is the initial one again, unless it is kept.
func TestIdle(t *testing.T) {
	for _, keep := range []bool{false, true} {
		n := star(t, fabric.Config{Seed: 1}, Config{KeepWindow: keep, Costs: &free}, 2, fabric.Link{Gbps: 10, Delay: 100 * des.Microsecond})
		a, _ := n.Dial(0, 1)
		a.Send(1_000_000, 0)
		runTo(t, n, des.Second)
		grown := a.Window()
		a.Send(1, 0)
		runTo(t, n, 2*des.Second)
		if grown < 100_000 || keep != (a.Window() >= grown) || !keep && a.Window() > 11*1460 {
			t.Errorf("keep %v: the window was %d and is %d", keep, grown, a.Window())
		}
	}
}

// TestSmallBuffers: writers wait for room, senders for the window that a reader opens,
// and all arrives, though the reader's processor is slow and acknowledgements are lost.
func TestSmallBuffers(t *testing.T) {
	for _, loss := range []float64{0, 0.05} {
		n := star(t, fabric.Config{Seed: 2}, Config{SendBuffer: minBuffer, RecvBuffer: minBuffer, MinRTO: 5 * des.Millisecond}, 2, fabric.Link{Gbps: 10, Delay: des.Microsecond, Loss: loss})
		n.Host(1).CPU().SetSpeed(1000)
		a, b := n.Dial(0, 1)
		got, longest := 0, uint64(0)
		b.OnMessage = func(m Message) { got += m.Size }
		for range 10 {
			a.Send(100_000, 0)
		}
		for n.k.Pending() > 0 {
			if _, err := n.k.Step(); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, b.received-b.taken)
			if a.written-a.una > minBuffer {
				t.Fatalf("%d bytes in a buffer of %d", a.written-a.una, minBuffer)
			}
		}
		if got != 1_000_000 || longest > minBuffer+1 || longest < minBuffer/2 {
			t.Errorf("loss %v: %d bytes came, up to %d waited in a buffer of %d", loss, got, longest, minBuffer)
		}
	}
}
