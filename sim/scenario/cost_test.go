package scenario

import (
	"runtime"
	"testing"
)

// TestCostIsLinear: with more hosts, whose pairs grow with their square as the traffic
// does, a push takes as many events, and a pair as much memory. What time that takes is
// in docs/fabric.md; it is not for a test.
func TestCostIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("up to 145 trainers and 55 servers")
	}
	var first [2]float64
	for _, hosts := range []int{50, 100, 200} {
		s := load(t, "training")
		if err := s.Scale(hosts); err != nil {
			t.Fatal(err)
		}
		if err := s.Pick([]string{"static"}); err != nil {
			t.Fatal(err)
		}
		if err := s.SetDuration(s.Workload.period(s.Topology.Gbps)); err != nil {
			t.Fatal(err)
		}
		j := s.Jobs()[0]
		pairs := float64(s.Workload.Trainers * (s.Workload.Servers + 1))
		memory := memoryOf(t, &j) / pairs
		r, err := j.Run(nil)
		if err != nil {
			t.Fatal(err)
		}
		events := float64(r.Events) / float64(r.Classes[0].Count)
		t.Logf("%d hosts: %d pushes of %.0f events, %.0f pairs of %.0f bytes", hosts, r.Classes[0].Count, events, pairs, memory)
		if memory > lineBytes {
			t.Errorf("%d hosts: a connection takes %.0f bytes, more than lineBytes", hosts, memory)
		}
		if first[0] == 0 {
			first = [2]float64{events, memory}
		} else if events > 1.2*first[0] || memory > 1.1*first[1] {
			t.Errorf("%d hosts: %.0f events a push and %.0f bytes a pair, %.0f and %.0f of 50 hosts", hosts, events, memory, first[0], first[1])
		}
	}
}

// memoryOf is what the connections of a job take, with their hosts and switches, but
// without the one buffer in which all large messages are, which nobody touches.
func memoryOf(t *testing.T, j *Job) float64 {
	before := heapInUse()
	n, err := j.s.newNetwork(&j.v)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{s: j.s, n: n, k: n.fabric().Kernel()}
	w := workloads[j.s.Workload.Kind]()
	if err := w.setup(b); err != nil {
		t.Fatal(err)
	}
	if err := n.settle(); err != nil {
		t.Fatal(err)
	}
	after := heapInUse()
	runtime.KeepAlive(b)
	runtime.KeepAlive(w)
	return float64(after) - float64(before) - maxMessage
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
