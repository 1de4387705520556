package tcp

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// TestBadConfig: what no host has is an error that names it.
func TestBadConfig(t *testing.T) {
	f, err := fabric.Single(fabric.Config{Seed: 1}, 2, cable)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Config{
		"Control":       {Control: 9},
		"MSS":           {MSS: 9000},
		"InitialWindow": {InitialWindow: -1},
		"MinRTO":        {MinRTO: -1},
		"AckDelay":      {AckDelay: 2 * des.Second},
		"SendBuffer":    {SendBuffer: 1000},
		"Cores":         {Cores: -1},
	} {
		if _, err := New(f, c); err == nil || !strings.Contains(err.Error(), name+" is") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []Config{Stock(), Tuned(), TunedDCTCP(), {MSS: 8942}} {
		if _, err := New(f, c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if s := Cubic.String() + DCTCP.String() + Reno.String() + Control(7).String(); s != "cubicdctcpreno?" {
		t.Errorf("the controls are called %s", s)
	}
}

// goldenTrace is the hash of a run's trace, on every machine. It changes with the model
// only.
const goldenTrace = "3d8b9d733f160403d5152a87c41b49f1704f30f122ee1310dc0e65a50e354e76"

// TestSameRun: the same seed gives the same trace, whatever Go's scheduler has.
func TestSameRun(t *testing.T) {
	old := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(old)
	trace := func(procs int, seed uint64) string {
		runtime.GOMAXPROCS(procs)
		h := sha256.New()
		n := star(t, fabric.Config{Seed: seed, Trace: h}, Config{MinRTO: 5 * des.Millisecond}, 9, fabric.Link{Gbps: 10, Delay: des.Microsecond, Loss: 0.001})
		for i := range 8 {
			a, b := n.Dial(i+1, 0)
			b.OnMessage = func(m Message) { b.Send(100, m.Tag) }
			for k := range 20 {
				a.Send(50_000, uint64(k))
			}
		}
		runTo(t, n, des.Never)
		return hex.EncodeToString(h.Sum(nil))
	}
	first := trace(1, 7)
	if first != goldenTrace {
		t.Errorf("the trace is %s, on other machines %s", first, goldenTrace)
	}
	for _, procs := range []int{1, 2, 8} {
		if again := trace(procs, 7); again != first {
			t.Errorf("with GOMAXPROCS %d the trace is %s, before %s", procs, again, first)
		}
	}
	if trace(1, 8) == first {
		t.Error("another seed gives the same trace")
	}
}

// TestIncast: 32 senders of 100 KB overflow a short queue: all arrives, with
// timeouts, and the least timeout decides how late.
func TestIncast(t *testing.T) {
	last := func(cfg Config) des.Time {
		n := star(t, fabric.Config{Seed: 1, Switch: fabric.SwitchConfig{EgressBytes: 100_000}}, cfg, 33, fabric.Link{Gbps: 10, Delay: des.Microsecond})
		var end des.Time
		got := 0
		for i := range 32 {
			a, b := n.Dial(i+1, 0)
			b.OnMessage = func(Message) { got, end = got+1, n.k.Now() }
			a.Send(100_000, 0)
		}
		runTo(t, n, des.Never)
		if s := n.Stats(); got != 32 || s.Timeouts == 0 || s.Retransmits == 0 {
			t.Errorf("%d of 32 messages, %+v", got, s)
		}
		return end
	}
	stock, tuned := last(Stock()), last(Tuned())
	t.Logf("the last of 32 messages: %v with 200 ms, %v with 5 ms", stock.Duration(), tuned.Duration())
	if stock < 200*des.Millisecond || tuned > 100*des.Millisecond {
		t.Errorf("the last of 32 messages: %v with 200 ms, %v with 5 ms", stock.Duration(), tuned.Duration())
	}
}
