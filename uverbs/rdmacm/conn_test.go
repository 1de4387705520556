//go:build linux

package rdmacm

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

const patience = 30 * time.Second

var listenAddr = netip.MustParseAddrPort("10.9.0.1:7174")

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openFDs(t testing.TB) int {
	t.Helper()
	e, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(e)
}

// options are those of an end whose queue pairs are of q.
func options(q *fakeQPs, private string) Options {
	return Options{
		MakeQP:  func(context.Context, Route) (qp.QP, error) { return q.make(), nil },
		Access:  mr.LocalWrite | mr.RemoteWrite,
		Private: []byte(private), MaxReads: 3, MaxDestReads: 5,
	}
}

// ends is both ends of a connection over a fake kernel.
type ends struct {
	k               *fakeKernel
	sys             *System
	active, passive *fakeQPs
}

func newEnds(t *testing.T) *ends {
	k := newFake(t)
	return &ends{k: k, sys: k.system(), active: &fakeQPs{t: t}, passive: &fakeQPs{t: t}}
}

// connect makes a listener and a connection to it, and gives both ends. What one end
// needs of the other comes without waiting, so an error of one does not hang the other.
func (e *ends) connect(ctx context.Context) (a, p *Conn, errA, errP error) {
	l, err := e.sys.Listen(listenAddr)
	if err != nil {
		return nil, nil, err, err
	}
	defer l.Close()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(done)
		if p, errP = l.Accept(ctx, options(e.passive, "pong")); errP != nil {
			l.Close()
		}
	}()
	if a, errA = e.sys.Dial(ctx, listenAddr, options(e.active, "ping")); errA != nil {
		cancel()
	}
	<-done
	return a, p, errA, errP
}

func TestConnect(t *testing.T) {
	fds := openFDs(t)
	e := newEnds(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a, p, errA, errP := e.connect(ctx)
	must(t, errA)
	must(t, errP)
	if string(a.Private()) != "pong" || string(p.Private()) != "ping" {
		t.Errorf("private data %q and %q", a.Private(), p.Private())
	}
	for _, end := range []struct {
		c *Conn
		q *fakeQP
	}{{a, e.active.last}, {p, e.passive.last}} {
		if end.c.QP() != qp.QP(end.q) || end.q.state != qp.RTS {
			t.Errorf("queue pair in %v", end.q.state)
		}
		if init := end.q.attrs[qp.Init]; init.Access != mr.LocalWrite|mr.RemoteWrite || init.Port != 1 {
			t.Errorf("INIT with %+v", init)
		}
		if rtr := end.q.attrs[qp.RTR]; rtr.RNRTimer != qp.DefaultRNRTimer || rtr.PathMTU != qp.MTU1024 || !rtr.AV.Global || rtr.AV.SGIDIndex != 1 {
			t.Errorf("RTR with %+v", rtr)
		}
		// Each end wants 3 and serves 5.
		if reads, dest := end.q.attrs[qp.RTS].MaxReads, end.q.attrs[qp.RTR].MaxDestReads; reads != 3 || dest != 3 {
			t.Errorf("%d reads and %d of the peer, want 3 and 3", reads, dest)
		}
		if r := end.c.Route(); r.Device.Name != "rxe7" || r.Port != 1 {
			t.Errorf("route %+v", r)
		}
	}
	if n := e.passive.last.attrs[qp.RTR].DestNum; n != e.active.last.num {
		t.Errorf("the passive side connects to queue pair %d, want %d", n, e.active.last.num)
	}
	must(t, a.Disconnect())
	must(t, p.Wait(ctx))
	must(t, p.Wait(ctx)) // and it stays so
	must(t, p.Disconnect())
	must(t, a.Wait(ctx))
	for _, c := range []*Conn{a, p} {
		must(t, c.Close())
		if err := c.Close(); !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("closed twice: %v", err)
		}
		if err := c.Disconnect(); !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("disconnect after close: %v", err)
		}
		if err := c.id.Connect(ConnParam{}); !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("command after close: %v", err)
		}
		if err := c.id.Close(); !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("id closed twice: %v", err)
		}
	}
	e.k.leaks()
	if e.active.last.state != qp.Err || e.active.open+e.passive.open != 0 {
		t.Errorf("queue pairs in %v, %d and %d open", e.active.last.state, e.active.open, e.passive.open)
	}
	if n := openFDs(t) - len(e.k.channels); n != fds { // the fake's own ends stay
		t.Errorf("%d descriptors at the end, %d at the start", n, fds)
	}
	// The shorter structs, which every kernel knows.
	for code, want := range map[uint32][2]int{ucmaConnect: {280, 0}, ucmaAccept: {288, 0}, ucmaGetEvent: {8, 328}} {
		if e.k.sizes[code] != want {
			t.Errorf("command %d has %v bytes, want %v", code, e.k.sizes[code], want)
		}
	}
}

// Each command fails in turn: both ends get an error or a connection, the failure has
// its errno and names the step, and nothing is left.
func TestEveryCommandFails(t *testing.T) {
	all := newEnds(t)
	a, p, errA, errP := all.connect(t.Context())
	must(t, errA)
	must(t, errP)
	must(t, a.Close())
	must(t, p.Close())
	seen := map[uint32]bool{}
	for n := range all.k.calls {
		for _, errno := range []syscall.Errno{syscall.EADDRINUSE, syscall.EIO} {
			fds := openFDs(t)
			e := newEnds(t)
			var failed uint32
			hit := false
			e.k.fail = func(i int, cmd uint32) syscall.Errno {
				if i == n && cmd != ucmaDestroyID {
					failed, hit = cmd, true
					return errno
				}
				return 0
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			a, p, errA, errP := e.connect(ctx)
			cancel()
			for _, c := range []*Conn{a, p} {
				if c != nil {
					c.Close()
				}
			}
			if hit && failed != ucmaDisconnect {
				seen[failed] = true
				var op *verbs.OpError
				err := errA
				if !errors.Is(err, errno) {
					err = errP
				}
				unnamed := func() bool { return errors.Is(errA, errno) && failed != ucmaCreateID && op.Object == "" }
				if !errors.Is(err, errno) || !errors.As(err, &op) || op.Device != "rdma_cm" || op.Op == "" || op.Remedy == "" || unnamed() {
					t.Errorf("command %d: %v: errors %v, %v", failed, errno, errA, errP)
				}
				if errno == syscall.EIO && !errors.Is(err, verbs.ErrDeviceLost) {
					t.Errorf("command %d: %v: not a lost device: %v", failed, errno, err)
				}
			}
			e.k.leaks()
			if e.active.open+e.passive.open != 0 {
				t.Errorf("command %d: %v: %d and %d queue pairs left", failed, errno, e.active.open, e.passive.open)
			}
			if f := openFDs(t) - len(e.k.channels); f != fds {
				t.Errorf("command %d: %v: %d descriptors left", failed, errno, f-fds)
			}
			for _, ch := range e.k.channels {
				ch.w.Close()
			}
		}
	}
	for _, code := range []uint32{
		ucmaCreateID, ucmaBindIP, ucmaListen, ucmaResolveIP, ucmaResolveRoute, ucmaQueryRoute, ucmaInitQPAttr, ucmaConnect, ucmaAccept,
	} {
		if !seen[code] {
			t.Errorf("command %d never failed", code)
		}
	}
}

// Steps whose event does not come, or comes as an error, name the step.
func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		name   string
		silent uint32
		event  EventType
		status int32
		want   error
		text   string
	}{
		{name: "address, no event", silent: ucmaResolveIP, want: context.DeadlineExceeded, text: "rdma_cm: resolve address 10.9.0.1:7174: no answer within 20ms"},
		{name: "route, no event", silent: ucmaResolveRoute, want: context.DeadlineExceeded, text: "resolve route 10.9.0.1:7174: no answer within 500ms"},
		{name: "connect, no event", silent: ucmaConnect, want: context.DeadlineExceeded, text: "connect 10.9.0.1:7174: no answer within 30ms"},
		{name: "address, status", event: AddrResolved, status: -int32(syscall.EHOSTUNREACH), want: syscall.EHOSTUNREACH, text: "resolve address"},
		{name: "nobody listens", want: ReasonInvalidServiceID, text: "rejected by the peer: nobody listens on that port (reason 8): start the peer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newEnds(t)
			if tt.silent != 0 {
				e.k.silent[tt.silent] = true
			}
			if tt.status != 0 {
				e.k.status[tt.event] = tt.status
			}
			o := options(e.active, "")
			o.ResolveTimeout, o.ConnectTimeout = patience, patience
			switch tt.silent {
			case ucmaResolveIP:
				o.ResolveTimeout = 20 * time.Millisecond
			case ucmaResolveRoute: // once the address has been resolved
				o.ResolveTimeout = 500 * time.Millisecond
			case ucmaConnect:
				o.ConnectTimeout = 30 * time.Millisecond
			}
			_, err := e.sys.Dial(t.Context(), listenAddr, o)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v", err)
			}
			e.k.leaks()
			if e.active.open != 0 {
				t.Errorf("%d queue pairs left", e.active.open)
			}
		})
	}
}

// The caller's functions and queue pairs fail, and contexts end.
func TestCallerFails(t *testing.T) {
	boom := errors.New("boom")
	for name, change := range map[string]func(*ends, *Options, context.CancelFunc){
		"MakeQP": func(_ *ends, o *Options, _ context.CancelFunc) {
			o.MakeQP = func(context.Context, Route) (qp.QP, error) { return nil, boom }
		},
		"Ready": func(_ *ends, o *Options, _ context.CancelFunc) { o.Ready = func(qp.QP) error { return boom } },
		"INIT":  func(e *ends, _ *Options, _ context.CancelFunc) { e.active.fail = map[qp.State]error{qp.Init: boom} },
		"RTR":   func(e *ends, _ *Options, _ context.CancelFunc) { e.active.fail = map[qp.State]error{qp.RTR: boom} },
		"RTS":   func(e *ends, _ *Options, _ context.CancelFunc) { e.active.fail = map[qp.State]error{qp.RTS: boom} },
		"context": func(_ *ends, o *Options, cancel context.CancelFunc) {
			o.Ready = func(qp.QP) error { cancel(); return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnds(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l, err := e.sys.Listen(listenAddr)
			must(t, err)
			o := options(e.active, "")
			change(e, &o, cancel)
			errs := make(chan error)
			go func() {
				_, err := l.Accept(t.Context(), options(e.passive, ""))
				errs <- err
			}()
			_, err = e.sys.Dial(ctx, listenAddr, o)
			if !errors.Is(err, boom) && !errors.Is(err, context.Canceled) && !errors.Is(err, errNoQP) {
				t.Errorf("error %v", err)
			}
			l.Close()
			if err := <-errs; err == nil {
				t.Error("the passive side is connected")
			}
			e.k.leaks()
			if e.active.open+e.passive.open != 0 {
				t.Errorf("%d and %d queue pairs left", e.active.open, e.passive.open)
			}
		})
	}
}

func TestReject(t *testing.T) {
	e := newEnds(t)
	l, err := e.sys.Listen(listenAddr)
	must(t, err)
	errs := make(chan error)
	go func() {
		r, err := l.Next(t.Context())
		if err == nil {
			if private, _ := r.Private(); string(private) != "let me in" {
				t.Errorf("request with %q", private)
			}
			err = r.Reject([]byte("full"))
		}
		errs <- err
	}()
	_, err = e.sys.Dial(t.Context(), listenAddr, options(e.active, "let me in"))
	must(t, <-errs)
	var ev *EventError
	if !errors.Is(err, ReasonConsumer) || !errors.As(err, &ev) {
		t.Fatalf("error %v", err)
	}
	if private, err := Unframe(ev.Private); err != nil || string(private) != "full" {
		t.Errorf("rejected with %q, %v", private, err)
	}
	must(t, l.Close())
	if err := l.Close(); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	e.k.leaks()
}

// Requests that nobody took are rejected when the listener is closed.
func TestListenerCloses(t *testing.T) {
	e := newEnds(t)
	l, err := e.sys.Listen(listenAddr)
	must(t, err)
	next := make(chan error)
	go func() {
		<-next
		_, err := l.Next(t.Context())
		next <- err
	}()
	o := options(e.active, "")
	o.Ready = func(qp.QP) error { go l.Close(); return nil }
	if _, err = e.sys.Dial(t.Context(), listenAddr, o); !errors.Is(err, ReasonConsumer) && !errors.Is(err, ReasonInvalidServiceID) {
		t.Errorf("error %v", err)
	}
	next <- nil
	if err := <-next; !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("waiting on a closed listener: %v", err)
	}
	e.k.leaks()
}

func TestPrivateTooLong(t *testing.T) {
	e := newEnds(t)
	for n, want := range map[int]error{MaxRequestPrivate - 1: ReasonInvalidServiceID, MaxRequestPrivate: verbs.ErrLimit, 256: nil} {
		_, err := e.sys.Dial(t.Context(), listenAddr, options(e.active, string(bytes.Repeat([]byte{1}, n))))
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	e.k.leaks()
}
