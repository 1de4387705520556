//go:build linux

package rdmacm_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm"
	"github.com/byteexpress/byteexpress/verbs"
)

// pair connects two sides of one process.
func pair(ctx context.Context, t testing.TB, a, p *side, l *rdmacm.Listener) (active, passive *rdmacm.Conn) {
	t.Helper()
	oa, op := a.options("ping"), p.options("pong")
	oa.Ready = func(q qp.QP) error { return a.recv(q, 0, 64) }
	op.Ready = func(q qp.QP) error { return p.recv(q, 0, 64) }
	errs := make(chan error)
	go func() {
		var err error
		passive, err = l.Accept(ctx, op)
		errs <- err
	}()
	active, err := rdmacm.Dial(ctx, l.Addr(), oa)
	if err != nil {
		l.Close()
	}
	must(t, errors.Join(err, <-errs))
	return active, passive
}

// talk sends a message each way.
func talk(ctx context.Context, t testing.TB, a, b *side) {
	t.Helper()
	for _, way := range [][2]*side{{a, b}, {b, a}} {
		from, to := way[0], way[1]
		text := fmt.Sprintf("from queue pair %d", from.qp.Num())
		n := copy(from.mem[64:], text)
		must(t, from.post(qp.SendWR{Opcode: qp.Send, SGEs: from.sge(64, n)}))
		_, err := from.next(ctx)
		must(t, err)
		c, err := to.next(ctx)
		must(t, err)
		if got := string(to.mem[:c.ByteLen]); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
}

func TestDeviceConnect(t *testing.T) {
	testdev.Verb(t, "rdma_cm: connect and accept", "rdma_cm: disconnect")
	noLeaks(t)
	for _, first := range []string{"active", "passive"} {
		t.Run(first+" disconnects first", func(t *testing.T) {
			ctx := patient(t)
			a, p := newSide(t, 4096), newSide(t, 4096)
			l, err := rdmacm.Listen(localAddr(t, 0))
			must(t, err)
			active, passive := pair(ctx, t, a, p, l)
			if string(active.Private()) != "pong" || string(passive.Private()) != "ping" {
				t.Errorf("private data %q and %q", active.Private(), passive.Private())
			}
			if active.Route().Remote != passive.Route().Local || active.Route().DGID != passive.Route().SGID {
				t.Errorf("routes %+v and %+v", active.Route(), passive.Route())
			}
			must(t, l.Close()) // the connection lives on
			talk(ctx, t, a, p)
			for _, s := range []*side{a, p} {
				// Each end wants 4 and serves 2.
				attr, err := s.qp.Query()
				must(t, err)
				if attr.MaxReads != 2 || attr.MaxDestReads != 2 || attr.Access&allAccess != allAccess || attr.RNRTimer != qp.DefaultRNRTimer {
					t.Errorf("attributes %+v", attr)
				}
			}
			one, other := active, passive
			if first == "passive" {
				one, other = passive, active
			}
			must(t, one.Disconnect())
			must(t, other.Wait(ctx))
			must(t, other.Close())
			must(t, one.Wait(ctx))
			must(t, one.Close())
		})
	}
}

// By a link-local IPv6 address, which needs a zone, and by one that is routed.
func TestDeviceIPv6(t *testing.T) {
	testdev.Verb(t, "rdma_cm: by IPv6")
	for name, wanted := range map[string]func(netip.Addr) bool{
		"link-local": netip.Addr.IsLinkLocalUnicast,
		"global":     func(a netip.Addr) bool { return a.IsGlobalUnicast() || a.IsPrivate() },
	} {
		t.Run(name, func(t *testing.T) { testIPv6(t, wanted) })
	}
}

func testIPv6(t *testing.T, wanted func(netip.Addr) bool) {
	noLeaks(t)
	ctx := patient(t)
	ifs, err := net.Interfaces()
	must(t, err)
	for _, i := range ifs {
		addrs, err := i.Addrs()
		must(t, err)
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil || !wanted(p.Addr()) || p.Addr().Is4() {
				continue
			}
			addr := p.Addr()
			if addr.IsLinkLocalUnicast() {
				addr = addr.WithZone(i.Name)
			}
			l, err := rdmacm.Listen(netip.AddrPortFrom(addr, 0))
			if err != nil {
				t.Logf("%v on %s: %v", p, i.Name, err) // not of an RDMA device
				continue
			}
			a, b := newSide(t, 4096), newSide(t, 4096)
			active, passive := pair(ctx, t, a, b, l)
			talk(ctx, t, a, b)
			if r := passive.Route(); r.Local.Addr().WithZone("") != p.Addr() {
				t.Errorf("local address %v, want %v", r.Local, p.Addr())
			}
			must(t, active.Close())
			must(t, passive.Close())
			must(t, l.Close())
			return
		}
	}
	t.Skip("no RDMA interface has such an IPv6 address")
}

// A wait ends with its context, and when the connection is closed.
func TestDeviceWaitEnds(t *testing.T) {
	noLeaks(t)
	ctx := patient(t)
	a, p := newSide(t, 4096), newSide(t, 4096)
	l, err := rdmacm.Listen(localAddr(t, 0))
	must(t, err)
	active, passive := pair(ctx, t, a, p, l)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := active.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait with a short context: %v", err)
	}
	if _, err := l.Next(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("next with a short context: %v", err)
	}
	// Two wait on one channel, for different things, one more is closed under its wait.
	waits := make(chan error, 2)
	go func() { waits <- passive.Wait(ctx) }()
	go func() {
		_, err := l.Next(ctx)
		waits <- err
	}()
	time.Sleep(10 * time.Millisecond) // either order is right; this one is likelier to wait
	must(t, l.Close())
	if err := <-waits; !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("the listener's wait: %v", err)
	}
	must(t, active.Close())
	must(t, <-waits)
	must(t, passive.Close())
}

func TestDeviceRefusals(t *testing.T) {
	testdev.Verb(t, "rdma_cm: reject")
	noLeaks(t)
	ctx := patient(t)
	addr := localAddr(t, 7341)
	a := newSide(t, 4096)
	_, err := rdmacm.Dial(ctx, addr, a.options(""))
	if !errors.Is(err, rdmacm.ReasonInvalidServiceID) || !strings.Contains(err.Error(), "nobody listens") {
		t.Errorf("nobody listens: %v", err)
	}
	l, err := rdmacm.Listen(addr)
	must(t, err)
	if _, err := rdmacm.Listen(addr); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second listener: %v", err)
	}
	errs := make(chan error)
	go func() {
		r, err := l.Next(ctx)
		if err == nil {
			err = r.Reject([]byte("closing time"))
		}
		errs <- err
	}()
	_, err = rdmacm.Dial(ctx, addr, a.options(""))
	var ev *rdmacm.EventError
	if !errors.Is(err, rdmacm.ReasonConsumer) || !errors.As(err, &ev) {
		t.Fatalf("rejected: %v", err)
	}
	if got, err := rdmacm.Unframe(ev.Private); err != nil || string(got) != "closing time" {
		t.Errorf("rejected with %q, %v", got, err)
	}
	must(t, <-errs)
	must(t, l.Close())

	// TEST-NET-1 (RFC 5737): no route, and no interface has it.
	nowhere := netip.MustParseAddrPort("192.0.2.1:7341")
	if _, err := rdmacm.Listen(nowhere); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("listener on an address of nobody: %v", err)
	}
	_, err = rdmacm.Dial(ctx, nowhere, a.options(""))
	var op *verbs.OpError
	if !errors.As(err, &op) || op.Op != "resolve address" || op.Remedy == "" {
		t.Errorf("no route: %v", err)
	}
	// A neighbour that is not there.
	absent := addr.Addr().As4()
	absent[3] ^= 0x55
	o := a.options("")
	o.ResolveTimeout, o.ConnectTimeout = 300*time.Millisecond, 300*time.Millisecond
	_, err = rdmacm.Dial(ctx, netip.AddrPortFrom(netip.AddrFrom4(absent), 7341), o)
	t.Log(err)
	if !errors.As(err, &op) || op.Op != "resolve address" && op.Op != "connect" || op.Remedy == "" {
		t.Errorf("absent neighbour: %v", err)
	}
}

// Many connections, one after the other, leave nothing.
func TestDeviceManyConnects(t *testing.T) {
	noLeaks(t)
	ctx := patient(t)
	a, p := newSide(t, 4096), newSide(t, 4096)
	l, err := rdmacm.Listen(localAddr(t, 0))
	must(t, err)
	for i := range 200 {
		active, passive := pair(ctx, t, a, p, l)
		if i%2 == 0 {
			must(t, active.Close())
			must(t, passive.Wait(ctx))
			must(t, passive.Close())
		} else {
			must(t, passive.Close())
			must(t, active.Close())
		}
	}
	must(t, l.Close())
}

// roleEnv makes the test binary the other process of TestDeviceTwoProcesses.
const roleEnv = "RDMACM_TEST_LISTEN"

func TestDeviceTwoProcesses(t *testing.T) {
	noLeaks(t)
	ctx := patient(t)
	addr := localAddr(t, 0)
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(ctx, exe, "-test.run=^TestOtherProcess$")
	cmd.Env = append(os.Environ(), roleEnv+"="+addr.String())
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the other process says nothing: %v", cmd.Wait())
	}
	addr, err = netip.ParseAddrPort(lines.Text())
	must(t, err)
	a := newSide(t, 4096)
	o := a.options("a")
	o.Ready = func(q qp.QP) error { return a.recv(q, 0, 64) }
	c, err := rdmacm.Dial(ctx, addr, o)
	must(t, err)
	if string(c.Private()) != "you said a" {
		t.Errorf("private data %q", c.Private())
	}
	n := copy(a.mem[64:], "hello")
	must(t, a.post(qp.SendWR{Opcode: qp.Send, SGEs: a.sge(64, n)}))
	_, err = a.want(ctx, true)
	must(t, err)
	if got := string(a.mem[:n]); got != "hello" {
		t.Errorf("echo %q", got)
	}
	must(t, c.Wait(ctx)) // the other end disconnects
	must(t, c.Close())
	for lines.Scan() {
		t.Log(lines.Text())
	}
	must(t, cmd.Wait())
}

// TestOtherProcess is the passive end of TestDeviceTwoProcesses: it echoes a message.
func TestOtherProcess(t *testing.T) {
	addr, err := netip.ParseAddrPort(os.Getenv(roleEnv))
	if err != nil {
		return
	}
	ctx := patient(t)
	l, err := rdmacm.Listen(addr)
	must(t, err)
	defer l.Close()
	fmt.Println(l.Addr())
	p, err := openSide(os.Getenv(testdev.Env), 4096)
	must(t, err)
	defer p.close()
	r, err := l.Next(ctx)
	must(t, err)
	said, err := r.Private()
	must(t, err)
	o := p.options("you said " + string(said))
	o.Ready = func(q qp.QP) error { return p.recv(q, 0, 64) }
	c, err := r.Accept(ctx, o)
	must(t, err)
	defer c.Close()
	got, err := p.want(ctx, true)
	must(t, err)
	must(t, p.post(qp.SendWR{Opcode: qp.Send, SGEs: p.sge(0, int(got.ByteLen))}))
	_, err = p.want(ctx, false)
	must(t, err)
}
