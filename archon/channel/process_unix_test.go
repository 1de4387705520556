//go:build unix

package channel_test

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testdev"
)

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// processFaults are what happens to one of three servers.
var processFaults = []struct {
	desc   string
	strike func(p *process)
	heal   func(p *process)
}{
	{"killed and restarted", (*process).kill, (*process).start},
	{"restarted at once", func(p *process) { p.kill(); p.start() }, func(*process) {}},
	{"stopped and continued", func(p *process) { p.signal(syscall.SIGSTOP) }, func(p *process) { p.signal(syscall.SIGCONT) }},
	{"stopped, then killed and restarted", func(p *process) { p.signal(syscall.SIGSTOP) }, func(p *process) { p.kill(); p.start() }},
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
	ch := newChannel(t, channel.Config{Resolver: channel.Static(list...), RDMA: rdma})
	recovery, err := quick().WithDefaults()
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

// hole is a proxy that loses everything when told to.
type hole struct {
	lose  atomic.Bool
	rate  atomic.Int64 // bytes a second; 0: any
	addr  string
	to    string
	l     net.Listener
	wg    sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
}

func newHole(t testing.TB, to string) *hole {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hole{addr: l.Addr().String(), to: to, l: l}
	h.wg.Go(h.serve)
	t.Cleanup(func() {
		l.Close()
		h.mu.Lock()
		for _, c := range h.conns {
			c.Close()
		}
		h.mu.Unlock()
		h.wg.Wait()
	})
	return h
}

func (h *hole) serve() {
	for {
		c, err := h.l.Accept()
		if err != nil {
			return
		}
		d, err := net.Dial("tcp", h.to)
		if err != nil {
			c.Close()
			continue
		}
		for _, conn := range []net.Conn{c, d} { // what is on its way is little
			conn.(*net.TCPConn).SetReadBuffer(128 << 10)
			conn.(*net.TCPConn).SetWriteBuffer(128 << 10)
		}
		h.mu.Lock()
		h.conns = append(h.conns, c, d)
		h.mu.Unlock()
		h.wg.Go(func() { h.copy(c, d) })
		h.wg.Go(func() { h.copy(d, c) })
	}
}

func (h *hole) copy(to, from net.Conn) {
	lost := false
	for b := make([]byte, 256<<10); ; {
		n, err := from.Read(b)
		if rate := h.rate.Load(); rate > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
		}
		lost = lost || h.lose.Load()
		if err == nil && !lost { // a stream that lost something stays lost
			_, err = to.Write(b[:n])
		}
		if err != nil {
			if !lost {
				to.Close()
			}
			from.Close()
			return
		}
	}
}

// TestBlackHole (case C19): the way to one of two servers loses everything, without a
// sign, idle and busy; it is noticed by the pings, no call fails, and it is used again
// when the way is back. The control: without pings it is not noticed.
func TestBlackHole(t *testing.T) {
	a, b := startServer(t, "a", nil), startServer(t, "b", nil)
	h := newHole(t, a.tcp)
	ch := newChannel(t, channel.Config{Resolver: channel.Static(channel.Endpoint{Name: "a", TCP: h.addr}, channel.Endpoint{Name: "b", TCP: b.tcp})})
	reached := func(p core.Path) func() bool { return func() bool { return stats(ch, "a").Path == p } }
	eventually(t, "a is reached", reached(core.TCP))
	h.lose.Store(true) // idle
	eventually(t, "it is noticed", reached(core.NoPath))
	h.lose.Store(false)
	eventually(t, "a is reached again", reached(core.TCP))
	l := startLoad(t, ch, 6)
	l.more(t, 100)
	blind := newChannel(t, channel.Config{Resolver: channel.Static(channel.Endpoint{Name: "a", TCP: h.addr}), Recovery: channel.Recovery{PingInterval: time.Hour}})
	if _, err := ask(limit(t), blind, echo, "x"); err != nil {
		t.Fatal(err)
	}
	h.lose.Store(true) // busy
	eventually(t, "it is noticed", reached(core.NoPath))
	if p := stats(blind, "a").Path; p != core.TCP {
		t.Errorf("control: without pings it is on %v", p)
	}
	l.more(t, 200)
	h.lose.Store(false)
	eventually(t, "a is reached again", reached(core.TCP))
	l.more(t, 100)
	l.end()
	if st := ch.Stats(); st.Failed != 0 {
		t.Errorf("%+v", st.CallStats)
	}
}

// TestLongMessagesAreNoSilence: on a slow link, messages that are on their way for
// longer than a ping may take are no reason to give the connection up.
func TestLongMessagesAreNoSilence(t *testing.T) {
	v := startServer(t, "a", nil)
	h := newHole(t, v.tcp)
	r := channel.Recovery{PingInterval: 100 * time.Millisecond, PingTimeout: time.Second, AttemptTimeout: -1, HedgeQuantile: -1}
	ch := newChannel(t, channel.Config{Resolver: channel.Static(channel.Endpoint{Name: "a", TCP: h.addr}), Recovery: r})
	if _, err := ask(limit(t), ch, echo, "x"); err != nil {
		t.Fatal(err)
	}
	h.rate.Store(20 << 20)
	ctx := limit(t)
	var wg sync.WaitGroup
	for _, size := range []int{32 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20} {
		wg.Go(func() {
			if got, err := ask(ctx, ch, echo, strings.Repeat("x", size)); err != nil || len(got) != size {
				t.Errorf("%d of %d bytes: %v", len(got), size, err)
			}
		})
	}
	wg.Wait()
	if st := ch.Stats(); st.Attempts != st.Calls {
		t.Errorf("%+v, %v", st.CallStats, stats(ch, "a").Trouble)
	}
}
