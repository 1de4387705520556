//go:build unix

package ps_test

import (
	"cmp"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/internal/testprocess"
	"github.com/byteexpress/byteexpress/ps"
)

// replicaProcess is a replica in a process of its own.
type replicaProcess struct {
	*testprocess.Process
	hole *testprocess.Hole // between clients and it
}

// TestReplicaProcesses: 3 shards of 2 replicas, each in a process of its own, under load
// while one after the other is killed and restarted, stopped and continued, or loses what
// clients send. No call fails, and in the end every push is there once.
func TestReplicaProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	testReplicaProcesses(t, "", append(replicaFaults, replicaFault{"black-holed",
		func(p *replicaProcess) { p.hole.Lose.Store(true) }, func(p *replicaProcess) { p.hole.Lose.Store(false) }}))
}

// replicaFault is what happens to one of the replicas.
type replicaFault struct {
	desc         string
	strike, heal func(p *replicaProcess)
}

var replicaFaults = []replicaFault{
	{"killed and restarted", func(p *replicaProcess) { p.Kill() }, func(p *replicaProcess) { p.Start(); p.Line() }},
	{"restarted at once", func(p *replicaProcess) { p.Kill(); p.Start() }, func(p *replicaProcess) { p.Line() }},
	{"stopped and continued", func(p *replicaProcess) { p.Signal(syscall.SIGSTOP) }, func(p *replicaProcess) { p.Signal(syscall.SIGCONT) }},
}

// testReplicaProcesses has clients go over RDMA if there is a device.
func testReplicaProcesses(t *testing.T, device string, faults []replicaFault) {
	const shards, replicas = 3, 2
	var all [shards][replicas]*replicaProcess
	channels := make([]*channel.Channel, shards)
	best, onDevice, lease, calls := core.TCP, "-", 400*time.Millisecond, int64(200)
	cfg := channel.Config{Service: "ps", Recovery: channel.Recovery{
		PingInterval: 200 * time.Millisecond, PingTimeout: time.Second, Settle: 200 * time.Millisecond, RedialMax: 200 * time.Millisecond}}
	if device != "" {
		best, onDevice, lease, calls = core.RDMA, device, 2*time.Second, 50 // on a machine that may be emulated
		d := deviceNamed(device)
		t.Cleanup(func() { eventually(t, "close the device", func() bool { return d.Close() == nil }) })
		cfg.RDMA = d
	}
	for i := range all {
		var peers [replicas]string
		for j := range peers {
			peers[j] = testprocess.Addr(t)
		}
		var list []channel.Endpoint
		for j := range all[i] {
			addr := testprocess.Addr(t)
			at := channel.Endpoint{Name: fmt.Sprint(i, ".", j)}
			if device != "" {
				at.RDMA = testprocess.Addr(t)
			}
			p := &replicaProcess{testprocess.New(t, replicaEnv, fmt.Sprintln(lease, i, shards, j, onDevice, addr, cmp.Or(at.RDMA, "-"), strings.Join(peers[:], " "))), testprocess.NewHole(t, addr)}
			p.Start()
			all[i][j] = p
			at.TCP = p.hole.Addr
			list = append(list, at)
		}
		var err error
		cfg.Resolver = channel.Static(list...)
		if channels[i], err = channel.New(cfg); err != nil {
			t.Fatal(err)
		}
	}
	for i := range all {
		for _, p := range all[i] {
			p.Line()
		}
	}
	c, err := ps.NewChannelClient(replicaDim, channels)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	reached := func(desc string) {
		t.Helper()
		eventually(t, desc+": all replicas are reached", func() bool {
			for _, ch := range channels {
				for _, r := range ch.Stats().Replicas {
					if r.Path != best {
						return false
					}
				}
			}
			return true
		})
	}
	l := startPushes(t, c)
	reached("begin")
	l.more(calls)
	for round, f := range faults {
		for j := range replicas {
			if device != "" && j != round%replicas {
				continue // one of two has to do on a machine that is slow
			}
			p := all[(round+j)%shards][j]
			l.take()
			l.more(calls)
			steady := l.take()
			f.strike(p)
			time.Sleep(3 * lease) // the others go on without it
			l.more(calls)
			during := l.take()
			f.heal(p)
			reached(f.desc)
			l.more(calls)
			t.Logf("replica %d %s: p99 %v before, %v during the fault", j, f.desc, steady, during)
		}
	}
	time.Sleep(3 * lease)
	l.stop()
	for range 20 { // of any replica
		if got, want := l.sum(), float64(l.pushes.Load()); got != want {
			t.Fatalf("the rows hold %v pushes of %v", got, want)
		}
	}
	for _, ch := range channels {
		st := ch.Stats()
		if st.Failed != 0 {
			t.Errorf("%+v", st.CallStats)
		}
		for _, r := range st.Replicas {
			if device != "" && r.Returns == 0 { // the link went down
				t.Errorf("it did not return from TCP: %+v", r)
			}
		}
	}
}
