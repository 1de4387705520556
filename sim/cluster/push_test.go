package cluster

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// pushSizes are as likely each: a lognormal distribution with mean 20 KB and 99th
// percentile 50 KB.
var pushSizes = [...]int{
	7138, 8786, 9829, 10665, 11395, 12061, 12686, 13284, 13864, 14434, 14998, 15562, 16130, 16705, 17291, 17891,
	18511, 19154, 19826, 20532, 21281, 22081, 22945, 23888, 24932, 26107, 27460, 29065, 31053, 33696, 37695, 46395,
}

const victimPeriod = 20 * des.Microsecond // mean, of each victim

// scene is who pushes to whom over what.
type scene struct {
	trainers, servers, perLeaf, spines, buffer int

	jitter des.Time // of a trainer's start in a step; 0: 10 us
}

// smallScene is to its buffer what 346 trainers and 124 servers are to 32 MB.
var smallScene = scene{trainers: 36, servers: 12, perLeaf: 16, spines: 2, buffer: 2_500_000}

// fullScene is the training cluster of the paper.
var fullScene = scene{trainers: 346, servers: 124, perLeaf: 32, spines: 8, buffer: 32 << 20, jitter: 100 * des.Microsecond}

// period is the time of a step, so that the servers' links are used to 0.4.
func (s scene) period() des.Time { return des.Time(s.trainers) * 4 * des.Microsecond }

// push is what came of trainers that push gradients to parameter servers.
type push struct {
	ports    fabric.PortStats
	push     []des.Time // latencies, sorted
	victims  []des.Time
	notified uint64
	undone   int
	dropped  uint64

	events            uint64        // from the first push on
	took              time.Duration // of real time
	steps, quietSteps int           // of the second, none had a pause
}

func p99(l []des.Time) des.Time { return l[len(l)*99/100] }

// runPush has every trainer push to all servers each period, and victims, pairs of
// trainers that have nothing to do with it, exchange messages of 4 KB, on a
// leaf-spine fabric with PFC and DCQCN.
func runPush(t testing.TB, sc scene, cfg Config, span des.Time) (r push) {
	t.Helper()
	trainers, servers, pushPeriod := sc.trainers, sc.servers, sc.period()
	fc := fabric.Config{Seed: 1, SkipWrites: true, Switch: fabric.SwitchConfig{
		BufferBytes: sc.buffer, PFC: true, ECN: fabric.ECN{KminBytes: sc.buffer / 80, KmaxBytes: sc.buffer / 20, Pmax: 0.2},
	}}
	fc.NIC.DCQCN = fabric.DCQCN15()
	hosts := trainers + servers
	f, err := fabric.LeafSpine(fc, hosts, sc.perLeaf, sc.spines, fabric.Link{Gbps: 100, Delay: 300 * des.Nanosecond}, fabric.Link{Gbps: 400, Delay: des.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(f, cfg)
	if err != nil {
		t.Fatal(err)
	}
	// Roles are spread over the leaves.
	var who [2][]int
	for i := range hosts {
		role := 0
		if (i+1)*servers/hosts > i*servers/hosts {
			role = 1
		}
		who[role] = append(who[role], i)
	}
	type path struct {
		from, to int
		k        *core.Socket
	}
	var pushes, victims []path
	connect := func(a, b int) path {
		if err := c.Connect(a, b); err != nil {
			t.Fatal(err)
		}
		return path{a, b, socket(t, c, a, b)}
	}
	for _, a := range who[0] {
		for _, b := range who[1] {
			pushes = append(pushes, connect(a, b))
		}
	}
	for i, a := range who[0] { // to a trainer of another leaf
		victims = append(victims, connect(a, who[0][(i+13)%trainers]))
	}
	rng := des.NewStream(1, 1<<20, 0, 0)
	start := c.Now()
	end := start + span
	send := func(p path, size int, into *[]des.Time) {
		at := c.Now()
		r.undone++
		err := c.Node(p.from).SendBytes(p.k, size, func(err error) {
			if err != nil {
				t.Errorf("%d to %d: %v", p.from, p.to, err)
			}
			r.undone--
			*into = append(*into, c.Now()-at)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	paused := uint64(0)
	look := func() {
		now := f.PortTotals().PausesSent
		if now == paused {
			r.quietSteps++
		}
		paused = now
	}
	for step := start; step < end; step += pushPeriod {
		r.steps++
		c.At(step+pushPeriod, look)
		for i := range trainers {
			c.At(step+des.Time(rng.N(int64(cmp.Or(sc.jitter, 10*des.Microsecond)))), func() {
				for j := range servers {
					send(pushes[i*servers+j], pushSizes[rng.N(int64(len(pushSizes)))], &r.push)
				}
			})
		}
	}
	for _, v := range victims {
		for at := start; at < end; at += des.Time(rng.N(int64(2 * victimPeriod))) {
			c.At(at, func() { send(v, 4000, &r.victims) })
		}
	}
	before, began := f.Kernel().Events(), time.Now()
	run(t, c, end+10*des.Millisecond)
	r.events, r.took = f.Kernel().Events()-before, time.Since(began)
	slices.Sort(r.push)
	slices.Sort(r.victims)
	r.ports, r.dropped = f.PortTotals(), f.Counts().Dropped
	for i := range hosts {
		sent, _ := f.Host(i).Notifications()
		r.notified += sent
	}
	t.Logf("window %d, target %v: %d pauses of %v in all, %d marks, %d notifications; push P50 %v P99 %v, victims P50 %v P99 %v; %d events",
		c.cfg.Window, cfg.WindowTarget, r.ports.PausesSent, r.ports.Paused.Duration(), r.ports.Marked, r.notified,
		r.push[len(r.push)/2].Duration(), p99(r.push).Duration(), r.victims[len(r.victims)/2].Duration(), p99(r.victims).Duration(), r.events)
	if r.undone != 0 || r.dropped != 0 {
		t.Errorf("%d messages did not end, %d packets were dropped", r.undone, r.dropped)
	}
	return r
}

// TestPushPauses: when many push to few at once, messages of 20 KB are on the wire
// before any notification about them comes. With DCQCN alone every step has pauses,
// and messages that have nothing to do with it wait for them. The send window acts
// before a message is on the wire: no pause, and the victims wait little.
//
// The buffer is to the traffic of a step what 32 MB are to that of 346 trainers and
// 124 servers, and the marking thresholds are to it what those of large networks are.
func TestPushPauses(t *testing.T) {
	const span = 2 * des.Millisecond
	off := runPush(t, smallScene, Config{Fragment: 8 << 10, Window: 1 << 20}, span)
	static := runPush(t, smallScene, Config{Fragment: 8 << 10, Window: 8 << 10}, span)
	moving := runPush(t, smallScene, Config{Fragment: 8 << 10, Window: 1 << 20, WindowTarget: 5 * time.Microsecond}, span)
	if off.quietSteps > 0 || off.notified == 0 {
		t.Errorf("without a window %d steps of %d have no pause, %d notifications: the test shows nothing", off.quietSteps, off.steps, off.notified)
	}
	for _, w := range []struct {
		name string
		push
	}{{"static", static}, {"adaptive", moving}} {
		if w.ports.PausesSent != 0 {
			t.Errorf("%s: %d pauses", w.name, w.ports.PausesSent)
		}
		if ratio := float64(p99(w.victims)) / float64(p99(off.victims)); ratio > 0.6 {
			t.Errorf("%s: the victims' P99 is %.2f of that without a window, want 0.6", w.name, ratio)
		}
	}
	if p99(moving.push) > p99(static.push) {
		t.Errorf("the P99 of pushes is %v with an adaptive window, %v with a static one", p99(moving.push).Duration(), p99(static.push).Duration())
	}
}

// TestPushFull is the same on the cluster of the paper: without a window more than
// 500 pauses a millisecond. It takes 2 GB and a minute, so it runs on demand.
func TestPushFull(t *testing.T) {
	if os.Getenv("SIM_FULL") == "" {
		t.Skip("takes 2 GB and a minute: set SIM_FULL=1")
	}
	run := func(window int) push {
		cfg := Config{EagerBytes: 512, RecvDepth: 8, SendDepth: 16, Fragment: 8 << 10, Window: window}
		return runPush(t, fullScene, cfg, 2*fullScene.period())
	}
	off, on := run(1<<20), run(8<<10)
	span := float64(2*fullScene.period()) / float64(des.Millisecond)
	if off.quietSteps > 0 || float64(off.ports.PausesSent) < 500*span || on.ports.PausesSent != 0 {
		t.Errorf("%d pauses without a window (%d steps without any), %d with one", off.ports.PausesSent, off.quietSteps, on.ports.PausesSent)
	}
	if ratio := float64(p99(on.victims)) / float64(p99(off.victims)); ratio > 0.6 {
		t.Errorf("the victims' P99 is %.2f of that without a window, want 0.6", ratio)
	}
}

// BenchmarkPush runs two steps of a cluster, and shows how the cost of an event
// grows with the number of hosts.
func BenchmarkPush(b *testing.B) {
	for _, sc := range []scene{
		smallScene,
		{trainers: 87, servers: 31, perLeaf: 32, spines: 4, buffer: 16 << 20},
		{trainers: 173, servers: 62, perLeaf: 32, spines: 8, buffer: 24 << 20},
		fullScene,
	} {
		b.Run(fmt.Sprintf("hosts=%d", sc.trainers+sc.servers), func(b *testing.B) {
			events, took := uint64(0), time.Duration(0)
			for b.Loop() {
				cfg := Config{EagerBytes: 512, RecvDepth: 8, SendDepth: 16, Fragment: 8 << 10, Window: 8 << 10}
				r := runPush(b, sc, cfg, 2*sc.period())
				events, took = events+r.events, took+r.took
			}
			b.ReportMetric(float64(events)/took.Seconds(), "events/s")
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/float64(sc.trainers+sc.servers)/1e6, "MB/host")
		})
	}
}
