package fabric

import (
	"fmt"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// ticking gives every timer of every flow an event: the reaction points have then
// never anything to catch up with.
func ticking(f *Fabric) {
	f.naive = true
	var flows []*flow
	number := map[*flow]int32{}
	var kind des.Kind
	next := func(i int32) {
		if r := &flows[i].react; r.active {
			f.k.At(min(r.alphaAt, r.timerAt), kind, i, 0)
		}
	}
	kind = f.k.Handle(func(i, _ int32) {
		r := &flows[i].react
		was := *r
		r.advance(&f.cfg.NIC.DCQCN, f.k.Now())
		if *r != was { // else it is an event of before a notification
			next(i)
		}
	})
	f.ticks = func(fl *flow) {
		i, ok := number[fl]
		if !ok {
			i = int32(len(flows))
			number[fl] = i
			flows = append(flows, fl)
		}
		next(i)
	}
}

// randomRun makes a small network and traffic by a seed, and gives a line for each
// message: when it ended, and how.
func randomRun(t *testing.T, seed uint64, naive bool) (messages string, events uint64) {
	t.Helper()
	r := des.NewStream(seed, 77, 0, 0)
	ecn := ECN{KminBytes: int(r.N(50_000)), Pmax: r.Float64()}
	ecn.KmaxBytes = ecn.KminBytes + int(r.N(100_000))
	cfg := Config{
		Seed: seed, SkipWrites: true, NIC: NICConfig{DCQCN: DCQCN15(), Quantum: int(1 + r.N(3)), MTU: qp.MTU1024 + qp.MTU(r.N(3))},
		Switch: SwitchConfig{BufferBytes: int(2<<20 + r.N(4<<20)), PFC: r.N(2) == 0, ECN: ecn},
	}
	if seed%2 == 0 {
		few := Cache{Entries: 3, Fetches: 2, Miss: 400 * des.Nanosecond}
		cfg.NIC.Contexts.Cache, cfg.NIC.WQEs, cfg.NIC.Pages.Cache = few, few, few
	}
	hosts := int(3 + r.N(6))
	host := Link{Gbps: []int{25, 40, 100}[r.N(3)], Delay: des.Time(r.N(int64(des.Microsecond))), Loss: float64(r.N(2)) * 1e-4}
	up := Link{Gbps: host.Gbps * int(1+r.N(4)), Delay: des.Time(r.N(int64(2 * des.Microsecond)))}
	f, err := LeafSpine(cfg, hosts, int(2+r.N(3)), int(1+r.N(3)), host, up)
	if err != nil {
		t.Fatal(err)
	}
	if naive {
		ticking(f)
	}
	var out strings.Builder
	left := 0
	for i := range int(4 + r.N(10)) {
		a := int(r.N(int64(hosts)))
		b := (a + 1 + int(r.N(int64(hosts-1)))) % hosts
		size := int(100 + r.N(200_000))
		x, y := f.join(t, a, b, size, func(p *qp.Path) { p.AckTimeout = 10 })
		n := int(1 + r.N(5))
		left += n
		x.done = func(c cq.Completion) {
			left--
			fmt.Fprintf(&out, "%d,%d,%d,%v\n", f.k.Now(), i, size, c.Status)
		}
		kind := f.k.Handle(func(int32, int32) {
			for range n {
				x.write(t, y, size)
			}
		})
		f.k.At(des.Time(r.N(int64(50*des.Microsecond))), kind, 0, 0)
		if r.N(3) == 0 {
			blast(f, b, a, int(r.N(100)), false)
		}
	}
	runTo(t, f, 200*des.Millisecond)
	if left != 0 {
		t.Errorf("seed %d: %d messages did not end", seed, left)
	}
	return out.String(), f.k.Events()
}

// TestNaive: the events that are saved make no difference to any message of 50 random
// networks.
func TestNaive(t *testing.T) {
	saved, all := uint64(0), uint64(0)
	seeds := uint64(50)
	if raceEnabled {
		seeds = 5
	}
	for seed := range seeds {
		fast, n := randomRun(t, seed, false)
		plain, m := randomRun(t, seed, true)
		if fast != plain {
			t.Fatalf("seed %d: the messages differ:\n%s\nand with an event for everything:\n%s", seed, fast, plain)
		}
		saved, all = saved+m-n, all+m
	}
	t.Logf("%d of %d events are saved", saved, all)
	if saved == 0 {
		t.Error("nothing is saved: the test shows nothing")
	}
}
