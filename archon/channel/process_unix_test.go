//go:build unix

package channel_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/internal/testprocess"
)

// processFaults are what happens to one of three servers.
var processFaults = []struct {
	desc   string
	strike func(p *process)
	heal   func(p *process)
}{
	{"killed and restarted", (*process).Kill, (*process).start},
	{"restarted at once", func(p *process) { p.Kill(); p.start() }, func(*process) {}},
	{"stopped and continued", func(p *process) { p.Signal(syscall.SIGSTOP) }, func(p *process) { p.Signal(syscall.SIGCONT) }},
	{"stopped, then killed and restarted", func(p *process) { p.Signal(syscall.SIGSTOP) }, func(p *process) { p.Kill(); p.start() }},
}

// TestProcesses: servers in processes of their own die, hang and come back while calls
// go on over TCP. Each call has 30 s, a fault is noticed in two, and none fails.
func TestProcesses(t *testing.T) { testProcesses(t, "") }

// TestDeviceProcesses is the same over RDMA on a real device.
func TestDeviceProcesses(t *testing.T) { testProcesses(t, testdev.Name(t)) }

func testProcesses(t *testing.T, device string) {
	var rdma archon.Transport
	best := core.TCP
	if device != "" {
		best = core.RDMA
		d := channel.NewDevice(openNamed(device), be.Config{})
		t.Cleanup(func() { eventually(t, "close the device", func() bool { return d.Close() == nil }) })
		rdma = d
	}
	var servers []*process
	var list []channel.Endpoint
	for _, name := range []string{"a", "b", "c"} {
		p := startProcess(t, name, device)
		servers, list = append(servers, p), append(list, p.endpoint)
	}
	ch := newChannel(t, channel.Config{Resolver: channel.Static(list...), RDMA: rdma, Recovery: alert()})
	recovery, err := alert().WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	bound := recovery.DetectionBound()
	l := startLoad(t, ch, 6)
	for i, f := range processFaults {
		p := servers[i%3]
		name := p.endpoint.Name
		eventually(t, name+" is reached", func() bool { return stats(ch, name).Path == best })
		l.take()
		l.more(t, 300)
		before, steady := stats(ch, name), l.take()
		f.strike(p)
		if f.desc != "restarted at once" {
			eventually(t, f.desc+": it is noticed", func() bool { return stats(ch, name).Path == core.NoPath })
		}
		l.more(t, 200)
		f.heal(p)
		eventually(t, f.desc+": it is used again", func() bool {
			now := stats(ch, name)
			return now.Path == best && (now.Restarts > before.Restarts || f.desc == "stopped and continued")
		})
		l.more(t, 100)
		t.Logf("%s: p99 %v before, %v during the fault; the detection bound is %v", f.desc, steady, l.take(), bound)
	}
	l.end()
	if st := ch.Stats(); st.Failed != 0 {
		t.Errorf("%+v", st.CallStats)
	}
}

// TestBlackHole (case C19): the way to one of two servers loses everything, without a
// sign, idle and busy; it is noticed by the pings, no call fails, and it is used again
// when the way is back. The control: without pings it is not noticed.
func TestBlackHole(t *testing.T) {
	a, b := startServer(t, "a", nil), startServer(t, "b", nil)
	h := testprocess.NewHole(t, a.tcp)
	ch := newChannel(t, channel.Config{Resolver: channel.Static(channel.Endpoint{Name: "a", TCP: h.Addr}, channel.Endpoint{Name: "b", TCP: b.tcp}), Recovery: alert()})
	reached := func(p core.Path) func() bool { return func() bool { return stats(ch, "a").Path == p } }
	eventually(t, "a is reached", reached(core.TCP))
	h.Lose.Store(true) // idle
	eventually(t, "it is noticed", reached(core.NoPath))
	h.Lose.Store(false)
	eventually(t, "a is reached again", reached(core.TCP))
	l := startLoad(t, ch, 6)
	l.more(t, 100)
	blind := newChannel(t, channel.Config{Resolver: channel.Static(channel.Endpoint{Name: "a", TCP: h.Addr}), Recovery: channel.Recovery{PingInterval: time.Hour}})
	if _, err := ask(limit(t), blind, echo, "x"); err != nil {
		t.Fatal(err)
	}
	h.Lose.Store(true) // busy
	eventually(t, "it is noticed", reached(core.NoPath))
	if p := stats(blind, "a").Path; p != core.TCP {
		t.Errorf("control: without pings it is on %v", p)
	}
	l.more(t, 200)
	h.Lose.Store(false)
	eventually(t, "a is reached again", reached(core.TCP))
	l.more(t, 100)
	l.end()
	if st := ch.Stats(); st.Failed != 0 {
		t.Errorf("%+v", st.CallStats)
	}
}
