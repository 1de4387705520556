//go:build linux

package rdmacm

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// waitingSteps are the steps of a dial that wait for an event: the command that gives
// none, and how errors name the step.
var waitingSteps = []struct {
	name string
	cmd  uint32
}{{"resolve address", ucmaResolveIP}, {"resolve route", ucmaResolveRoute}, {"connect", ucmaConnect}}

// The context ends while a dial waits in each of its steps, and before it begins.
func TestDialCanceled(t *testing.T) {
	why := errors.New("no longer wanted")
	for _, step := range append(waitingSteps, struct {
		name string
		cmd  uint32
	}{"resolve address", 0}) {
		e := newEnds(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		if step.cmd == 0 {
			cancel(why)
		}
		e.k.silent[step.cmd] = true
		o := options(e.active, "")
		o.ResolveTimeout, o.ConnectTimeout = patience, patience
		go func() {
			for !e.k.called(step.cmd) && ctx.Err() == nil {
				runtime.Gosched()
			}
			cancel(why)
		}()
		_, err := e.sys.Dial(ctx, listenAddr, o)
		if !errors.Is(err, why) || !strings.Contains(err.Error(), "rdma_cm: "+step.name+" 10.9.0.1:7174") {
			t.Errorf("%s: error %v", step.name, err)
		}
		e.k.leaks()
		if e.active.open != 0 {
			t.Errorf("%s: %d queue pairs left", step.name, e.active.open)
		}
	}
}

// An acceptance whose peer never says that it is up ends with its context.
func TestAcceptCanceled(t *testing.T) {
	e := newEnds(t)
	l, err := e.sys.Listen(listenAddr)
	must(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	e.k.silent[ucmaAccept] = true
	go e.sys.Dial(ctx, listenAddr, options(e.active, "ping"))
	go func() {
		for !e.k.called(ucmaAccept) && ctx.Err() == nil {
			runtime.Gosched()
		}
		cancel()
	}()
	if _, err := l.Accept(ctx, options(e.passive, "pong")); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "accept") {
		t.Errorf("error %v", err)
	}
	if e.passive.open != 0 {
		t.Errorf("%d queue pairs left", e.passive.open)
	}
}

func (k *fakeKernel) called(cmd uint32) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.calls {
		if c == cmd {
			return true
		}
	}
	return false
}

// The device is removed, or the way changes, in each step of a dial and of a
// connection's life.
func TestWayIsLost(t *testing.T) {
	for _, lost := range []struct {
		event EventType
		want  error
	}{{DeviceRemoval, verbs.ErrDeviceLost}, {AddrChange, ErrAddrChanged}} {
		for _, step := range waitingSteps {
			e := newEnds(t)
			e.k.silent[step.cmd] = true
			o := options(e.active, "")
			o.ResolveTimeout, o.ConnectTimeout = patience, patience
			go func() {
				for !e.k.called(step.cmd) {
					runtime.Gosched()
				}
				e.k.tellAll(lost.event)
			}()
			if _, err := e.sys.Dial(t.Context(), listenAddr, o); !errors.Is(err, lost.want) || !strings.Contains(err.Error(), step.name) {
				t.Errorf("%v: %s: error %v", lost.event, step.name, err)
			}
			e.k.leaks()
		}
		e := newEnds(t)
		a, p, errA, errP := e.connect(t.Context())
		must(t, errA)
		must(t, errP)
		e.k.tellAll(lost.event)
		for _, c := range []*Conn{a, p} {
			if err := c.Wait(t.Context()); !errors.Is(err, lost.want) {
				t.Errorf("%v: wait: %v", lost.event, err)
			}
			must(t, c.Close())
		}
		e.k.leaks()
	}
}

// tellAll pushes an event to every ID.
func (k *fakeKernel) tellAll(typ EventType) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range k.ids {
		k.push(id, typ, 0, nil, nil)
	}
}

// What Options say of the queue pair is in its attributes; 0 leaves the kernel's.
func TestQualityOfConnection(t *testing.T) {
	for _, want := range []Options{
		{},
		{MTU: qp.MTU512, AckTimeout: 15, RNRTimer: 3, TrafficClass: 106, ServiceLevel: 5, RetryCount: 2, RNRRetry: 1},
		{MTU: qp.MTU4096}, // more than the way has
	} {
		e := newEnds(t)
		l, err := e.sys.Listen(listenAddr)
		must(t, err)
		with := func(q *fakeQPs) Options {
			o := want
			o.MakeQP = options(q, "").MakeQP
			return o
		}
		errs := make(chan error, 1)
		var p *Conn
		go func() {
			var err error
			p, err = l.Accept(t.Context(), with(e.passive))
			errs <- err
		}()
		a, err := e.sys.Dial(t.Context(), listenAddr, with(e.active))
		must(t, err)
		must(t, <-errs)
		timer, mtu := qp.RNRTimer(qp.DefaultRNRTimer), qp.MTU1024
		if want.RNRTimer != 0 {
			timer, mtu = want.RNRTimer, want.MTU
		}
		for _, q := range []*fakeQPs{e.active, e.passive} {
			rtr, rts := q.last.attrs[qp.RTR], q.last.attrs[qp.RTS]
			if rtr.PathMTU != mtu || rtr.RNRTimer != timer || rtr.AV.TrafficClass != want.TrafficClass || rtr.AV.SL != want.ServiceLevel {
				t.Errorf("%+v: RTR with %+v", want, rtr)
			}
			if rts.AckTimeout != want.AckTimeout { // the fake's is 0
				t.Errorf("%+v: RTS with %+v", want, rts)
			}
		}
		if (len(e.k.tos) == 1 && e.k.tos[0] == want.TrafficClass) != (want.TrafficClass != 0) {
			t.Errorf("%+v: type of service %v", want, e.k.tos)
		}
		must(t, a.Close())
		must(t, p.Close())
		must(t, l.Close())
		e.k.leaks()
	}
}

func TestOptions(t *testing.T) {
	k := newFake(t)
	c, ids := k.channel(1)
	defer c.Close()
	must(t, ids[0].SetTOS(104))
	must(t, ids[0].SetIPv6Only())
	must(t, ids[0].Bind(netip.MustParseAddrPort("[::]:7175")))
	if err := ids[0].SetIPv6Only(); err == nil || !strings.Contains(err.Error(), "set option IPv6 only") {
		t.Errorf("after Bind: %v", err)
	}
	must(t, ids[0].Close())
}

// iWARP is refused before a queue pair is made.
func TestIWARP(t *testing.T) {
	e := newEnds(t)
	must(t, os.WriteFile(filepath.Join(e.sys.Verbs.SysRoot, "class/infiniband/rxe7/node_type"), []byte("4: RNIC\n"), 0o644))
	if _, err := e.sys.Dial(t.Context(), listenAddr, options(e.active, "")); !errors.Is(err, verbs.ErrUnsupported) || !strings.Contains(err.Error(), "iWARP") {
		t.Errorf("error %v", err)
	}
	e.k.leaks()
}
