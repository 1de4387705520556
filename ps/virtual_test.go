package ps_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/internal/testfault"
	"github.com/byteexpress/byteexpress/internal/testmodel"
	"github.com/byteexpress/byteexpress/sim"
)

// virtualFault is something that happens to a replica, n, or to the client's RDMA.
type virtualFault struct {
	desc         string
	strike, heal func(w *virtualWorld, n *virtualNode)
	setUp        testfault.Step // it fails from the start, in place of strike
	lasts        time.Duration
	client       bool          // all replicas are reached over TCP meanwhile
	falls        []core.Reason // what a fallback may be counted as
	apart        bool          // the replicas cannot reach each other
	mapped       bool          // shards are by a map, which changes
}

var virtualFaults = append([]virtualFault{
	{desc: "none", strike: func(*virtualWorld, *virtualNode) {}, heal: func(*virtualWorld, *virtualNode) {}, lasts: time.Second},
	{desc: "killed, restarted later", strike: func(_ *virtualWorld, n *virtualNode) { n.kill() }, heal: func(_ *virtualWorld, n *virtualNode) { n.boot() }, lasts: 3 * time.Second, falls: gone},
	{desc: "restarted at the same address at once", strike: func(_ *virtualWorld, n *virtualNode) { n.kill(); n.boot() }, heal: func(*virtualWorld, *virtualNode) {}, lasts: 2 * time.Second, falls: gone},
	{desc: "hangs", strike: func(_ *virtualWorld, n *virtualNode) { n.freeze(true) }, heal: func(_ *virtualWorld, n *virtualNode) { n.freeze(false) }, lasts: 4 * time.Second, falls: gone},
	{desc: "link to clients black-holed", strike: func(_ *virtualWorld, n *virtualNode) { n.cut(true) }, heal: func(_ *virtualWorld, n *virtualNode) { n.cut(false) }, lasts: 4 * time.Second, falls: gone},
	{desc: "moves to another address", strike: func(w *virtualWorld, n *virtualNode) {
		n.kill()
		n.tcp, n.be = n.name+":4", n.name+":5"
		n.boot()
		<-n.serving
		w.resolve(n.shard)
	}, heal: func(*virtualWorld, *virtualNode) {}, lasts: 2 * time.Second, falls: gone},
	{desc: "link between replicas black-holed", strike: func(w *virtualWorld, n *virtualNode) { w.part(n, true) }, heal: func(w *virtualWorld, n *virtualNode) { w.part(n, false) }, lasts: 3 * time.Second, apart: true},
	{desc: "RDMA dies", strike: func(w *virtualWorld, _ *virtualNode) { w.partition(true) }, heal: func(w *virtualWorld, _ *virtualNode) { w.partition(false) }, lasts: 3 * time.Second, client: true,
		falls: []core.Reason{core.RetryExceeded, core.PeerLost, core.Silent}},
	{desc: "NIC removed", strike: func(w *virtualWorld, _ *virtualNode) { w.fault.Fail(testfault.Open); w.device.Remove() }, heal: func(w *virtualWorld, _ *virtualNode) {
		dev, err := w.fabric.NewDevice("sim:client2", sim.DeviceConfig{})
		if err != nil {
			w.t.Fatal(err)
		}
		w.device = dev
		w.fault.Replace(dev.Open)
		w.fault.Fail(testfault.None)
	}, lasts: 2 * time.Second, client: true, falls: []core.Reason{core.DeviceLost, core.NoDevice}},
}, append(setUpFails(), virtualMoves...)...)

// gone is what a connection to a replica ends with that is not there.
var gone = []core.Reason{core.RetryExceeded, core.PeerLost, core.PeerClosed, core.Silent, core.Unreachable, core.TimedOut, core.OpenFailed, core.Slow, core.Greeting}

// setUpFails are faults of each step of a set-up over RDMA.
func setUpFails() (list []virtualFault) {
	for step, reason := range map[testfault.Step]core.Reason{
		testfault.Open: core.NoDevice, testfault.PD: core.NoDomain, testfault.MR: core.NoMemory, testfault.CQ: core.NoCQ, testfault.Arm: core.NoArm,
		testfault.QP: core.NoQP, testfault.Init: core.InitFailed, testfault.RTR: core.RTRFailed, testfault.RTS: core.RTSFailed, testfault.Send: core.OpenFailed,
	} {
		list = append(list, virtualFault{desc: "set-up fails: " + reason.String(), setUp: step, lasts: 2 * time.Second, client: true, falls: []core.Reason{reason},
			heal: func(w *virtualWorld, _ *virtualNode) { w.fault.Fail(testfault.None) }})
	}
	slices.SortFunc(list, func(a, b virtualFault) int { return int(a.setUp - b.setUp) })
	return list
}

// part has the network between the replicas of a shard lose everything, or no longer.
func (w *virtualWorld) part(n *virtualNode, lose bool) {
	for _, p := range w.nodes {
		if p.shard == n.shard && p != n {
			w.net.Lose(n.name, p.name, lose)
		}
	}
}

// partition has RDMA between the client and all replicas lose everything, or no longer.
func (w *virtualWorld) partition(lose bool) {
	for _, n := range w.nodes {
		w.fabric.Partition(w.device, n.device, lose)
	}
}

// virtualRun is one run of a fault, and what is to be different about it in a control.
type virtualRun struct {
	seed   uint64
	fault  virtualFault
	cfg    channel.Config
	around archon.Interceptor
}

type virtualResult struct {
	wrong          []string
	steady, during time.Duration // p99
	back           time.Duration // until RDMA was used again
	requests       int
	trace          uint64
}

var virtualRecovery = core.Config{PingInterval: 200 * time.Millisecond, PingTimeout: time.Second, RedialMax: 200 * time.Millisecond, DialTimeout: 2 * time.Second, Settle: 500 * time.Millisecond}

// run runs the fault in virtual time.
func (r virtualRun) run(t *testing.T) (res virtualResult) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if r.cfg.Recovery == (core.Config{}) {
			r.cfg.Recovery = virtualRecovery
		}
		w := newVirtualWorld(t, r.seed, r.around, r.fault.mapped)
		defer w.close()
		res = r.drive(w)
	})
	return res
}

func (r virtualRun) drive(w *virtualWorld) (res virtualResult) {
	f := &r.fault
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	say := func(format string, args ...any) { res.wrong = append(res.wrong, fmt.Sprintf(format, args...)) }
	w.fault.Fail(f.setUp)
	w.connect(r.seed, r.cfg)
	w.stale = f.apart
	for _, ch := range w.channels {
		if err := ch.Wait(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	var steady, during [2]time.Duration
	measure := func() {
		steady[0] = w.now()
		time.Sleep(2 * time.Second)
		steady[1] = w.now()
	}
	if f.setUp == testfault.None {
		if d := w.until(core.RDMA, w.nodes...); d > time.Second {
			say("not on RDMA after %v", d)
		}
		measure()
		time.Sleep(time.Duration(w.rng.Int64N(int64(50 * time.Millisecond))))
	}
	during[0] = w.now()
	if f.setUp == testfault.None {
		w.burst()
		f.strike(w, n)
	}
	if f.client {
		if d := w.until(core.TCP, w.nodes...); d > w.recovery.DetectionBound()+f.lasts {
			say("not on TCP after %v", d)
		}
	}
	time.Sleep(f.lasts)
	during[1] = w.now()
	if f.heal(w, n); f.setUp != testfault.None && w.fault.Fails() == 0 {
		say("the fault did not strike")
	}
	<-n.serving
	res.back = w.until(core.RDMA, w.nodes...)
	if f.setUp != testfault.None {
		measure()
	}
	time.Sleep(time.Second)
	w.stopLoad()
	time.Sleep(3 * virtualLease)
	w.ways.stop()

	res.steady, res.during = w.p99(steady[0], steady[1]), w.p99(during[0], during[1])
	res.requests, res.trace = len(w.all), w.trace()
	res.wrong = append(res.wrong, w.wrong...)
	if bound := 3*res.steady + w.recovery.DetectionBound(); res.during > bound {
		say("p99 %v during the fault, %v before: more than %v", res.during, res.steady, bound)
	}
	if most := 2*virtualRecovery.Settle + 2*virtualRecovery.DialTimeout; res.back > most {
		say("RDMA was used again after %v", res.back)
	}
	if f.client && res.back < virtualRecovery.Settle {
		say("RDMA was used again after %v, before the settle time", res.back)
	}
	w.checkWays(f, n, say)
	w.checkSums(say)
	return res
}

// checkWays holds the counts of fallbacks and returns against what was seen of the ways.
func (w *virtualWorld) checkWays(f *virtualFault, struck *virtualNode, say func(string, ...any)) {
	for _, n := range w.nodes {
		st, total := w.stats(n), uint64(0)
		for reason, times := range st.Fallbacks {
			total += times
			if !slices.Contains(f.falls, reason) {
				say("%s: a fallback counted as %v", n.name, reason)
			}
		}
		if total != w.ways.falls[n.name] || st.Returns != w.ways.backs[n.name] {
			say("%s: fallbacks %v and %d returns counted, %d and %d seen", n.name, st.Fallbacks, st.Returns, w.ways.falls[n.name], w.ways.backs[n.name])
		}
		if f.client && (total != 1 || st.Returns != 1) || !f.client && n != struck && total != 0 {
			say("%s: fallbacks %v, %d returns", n.name, st.Fallbacks, st.Returns)
		}
	}
}

// checkSums holds every row of every replica to have each push once.
func (w *virtualWorld) checkSums(say func(string, ...any)) {
	for key := range uint64(virtualKeys) {
		want, holders := uint64(w.acked[key]), 0
		for _, n := range w.nodes {
			if w.owner(key) != n.shard {
				continue
			}
			holders++
			if got := n.table.Version(key); got != want {
				say("%s: key %d has %d pushes of %d", n.name, key, got, want)
			}
		}
		if holders != virtualReplicas || w.acked[key] != w.issued[key] {
			say("key %d: %d replicas, %v pushes answered of %v", key, holders, w.acked[key], w.issued[key])
		}
	}
}

// virtualSeeds are those that a fault runs with: VIRTUAL_SEEDS of them, or a few; one
// alone if SEED is set.
func virtualSeeds() (list []uint64) {
	if seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		return []uint64{seed}
	}
	n, err := strconv.ParseUint(os.Getenv("VIRTUAL_SEEDS"), 10, 64)
	if err != nil {
		n = 10
		if raceEnabled || testing.Short() {
			n = 1
		}
	}
	for seed := range n {
		list = append(list, seed+1)
	}
	return list
}

// TestVirtualFaults: whatever happens to a replica, its links or RDMA, no request fails
// while the other replica of the shard lives; the slowest percent wait no longer than it
// takes to notice; a fetch has every push that was answered before; in the end every
// replica has each push once; calls are back on RDMA when it has settled; and every
// fallback is counted, with its reason.
func TestVirtualFaults(t *testing.T) {
	if testmodel.Active() {
		t.Skip("its NICs are simulated ones, whatever the model")
	}
	for _, f := range virtualFaults {
		t.Run(f.desc, func(t *testing.T) {
			t.Parallel()
			var steady, during, back time.Duration
			requests := 0
			for _, seed := range virtualSeeds() {
				res := virtualRun{seed: seed, fault: f}.run(t)
				for _, what := range res.wrong {
					t.Errorf("SEED=%d: %s", seed, what)
				}
				steady, during, back = max(steady, res.steady), max(during, res.during), max(back, res.back)
				requests += res.requests
			}
			t.Logf("%d requests; worst p99 %v, %v during the fault; RDMA again after %v at most", requests, steady, during, back)
		})
	}
}

// TestVirtualSeed: a seed gives the same run again, to the nanosecond.
func TestVirtualSeed(t *testing.T) {
	for _, f := range []int{1, 4, 7} {
		first := virtualRun{seed: 7, fault: virtualFaults[f]}.run(t)
		again := virtualRun{seed: 7, fault: virtualFaults[f]}.run(t)
		other := virtualRun{seed: 8, fault: virtualFaults[f]}.run(t)
		if first.trace != again.trace || first.trace == other.trace {
			t.Errorf("%s: %x, %x and %x with another seed", virtualFaults[f].desc, first.trace, again.trace, other.trace)
		}
	}
}
