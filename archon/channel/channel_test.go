package channel_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/sim"
)

func TestCallsSpread(t *testing.T) {
	var list []channel.Endpoint
	for _, name := range []string{"a", "b", "c"} {
		list = append(list, channel.Endpoint{Name: name, TCP: startServer(t, name, nil).tcp})
	}
	r := quick()
	r.HedgeQuantile, r.AttemptTimeout = -1, -1 // a hedge goes elsewhere, and so does another try
	ch := newChannel(t, channel.Config{Resolver: channel.Static(list...), Recovery: r})
	eventually(t, "every replica answers", func() bool {
		replicas := ch.Stats().Replicas
		for _, r := range replicas {
			if r.Path != core.TCP {
				return false
			}
		}
		return len(replicas) == 3
	})
	seen := map[string]int{}
	for range 200 {
		name, err := ask(limit(t), ch, who, "")
		if err != nil {
			t.Fatal(err)
		}
		seen[name]++
	}
	if len(seen) != 3 {
		t.Errorf("answers of %v", seen)
	}
	st, sum := ch.Stats(), uint64(0)
	for _, r := range st.Replicas {
		if sum += r.Attempts; r.Attempts != uint64(seen[r.Name]) {
			t.Errorf("%d attempts counted at %s, %d answers", r.Attempts, r.Name, seen[r.Name])
		}
	}
	if c := ch.Client(1); sum != st.Attempts || c == nil || c != ch.Client(1) {
		t.Errorf("%d attempts at replicas, %d in all; client %p", sum, st.Attempts, c)
	}
	// Affinity keeps to one.
	ctx := channel.WithOptions(limit(t), channel.Options{Affinity: 12345})
	first, _ := ask(ctx, ch, who, "")
	for range 50 {
		if name, err := ask(ctx, ch, who, ""); name != first || err != nil {
			t.Errorf("affinity: %q then %q, %v", first, name, err)
		}
	}
}

// TestLostReplicas: servers end and come back at their addresses while calls go on.
func TestLostReplicas(t *testing.T) {
	a, b := startServer(t, "a", nil), startServer(t, "b", nil)
	ch := newChannel(t, channel.Config{Resolver: channel.Static(channel.Endpoint{Name: "a", TCP: a.tcp}, channel.Endpoint{Name: "b", TCP: b.tcp})})
	l := startLoad(t, ch, 8)
	l.more(t, 100)
	for range 3 {
		for _, v := range []*server{a, b} {
			v.stop()
			l.more(t, 100)
			v.start()
			eventually(t, "the restarted server is used", func() bool { return stats(ch, v.name).Path == core.TCP })
			l.more(t, 20)
		}
	}
	l.end()
	if n := stats(ch, "a").Restarts; n != 3 {
		t.Errorf("%d restarts of a seen, want 3", n)
	}
}

// TestFailedReplica: one of three fails every call. No call fails, and attempts stay
// within 1.2 of the calls.
func TestFailedReplica(t *testing.T) {
	for _, fail := range []*archon.Error{{Code: archon.Unavailable}, {Code: archon.Internal}, {Code: archon.ResourceExhausted, Retryable: true}} {
		var list []channel.Endpoint
		var servers []*server
		for _, name := range []string{"a", "b", "c"} {
			servers = append(servers, startServer(t, name, nil))
			list = append(list, channel.Endpoint{Name: name, TCP: servers[len(servers)-1].tcp})
		}
		ch := newChannel(t, channel.Config{Resolver: channel.Static(list...)})
		servers[1].fail.Store(fail)
		l := startLoad(t, ch, 4)
		l.more(t, 1000)
		l.end()
		if st := ch.Stats(); float64(st.Attempts) > 1.2*float64(st.Calls) || st.Failed > 0 || servers[1].calls.Load() == 0 {
			t.Errorf("%v: %+v, %d at the failing one", fail, st.CallStats, servers[1].calls.Load())
		}
	}
}

func TestErrorNamesEverything(t *testing.T) {
	v := startServer(t, "a", nil)
	ch := newChannel(t, channel.Config{Service: "model", Resolver: channel.Static(channel.Endpoint{Name: "a", TCP: v.tcp})})
	v.fail.Store(&archon.Error{Code: archon.Internal, Message: "disk on fire"})
	_, err := ask(limit(t), ch, echo, "x")
	var e *channel.Error
	if !errors.As(err, &e) || !errors.Is(err, archon.Internal) || archon.CodeOf(err) != archon.Internal {
		t.Fatalf("error %v", err)
	}
	if e.Service != "model" || e.Replica != "a" || e.Attempts < 2 || len(e.Causes) != e.Attempts {
		t.Errorf("error %+v", e)
	}
	for _, part := range []string{`service "model"`, "test.Echo", "attempts", "disk on fire", "over tcp"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	// What the application itself says is not repeated.
	v.fail.Store(&archon.Error{Code: archon.NotFound, Message: "no such row"})
	_, err = ask(limit(t), ch, echo, "x")
	if !errors.As(err, &e) || !errors.Is(err, archon.NotFound) || e.Attempts != 1 {
		t.Errorf("error %v", err)
	}
}

// TestUnrepeatableIsSentOnce, while a refused one is repeated.
func TestUnrepeatableIsSentOnce(t *testing.T) {
	once := archon.NewMethod("test.Once")
	var n atomic.Int64
	v := startServer(t, "a", handlers{once: func(*archon.ServerCall) error {
		switch n.Add(1) {
		case 1:
			return &archon.Error{Code: archon.Unavailable}
		case 2, 3:
			return &archon.Error{Code: archon.ResourceExhausted, Retryable: true}
		}
		return nil
	}})
	ch := newChannel(t, channel.Config{Resolver: channel.Static(channel.Endpoint{TCP: v.tcp})})
	if _, err := ask(limit(t), ch, once, ""); !errors.Is(err, archon.Unavailable) || n.Load() != 1 {
		t.Errorf("failed: %v after %d calls", err, n.Load())
	}
	if _, err := ask(limit(t), ch, once, ""); err != nil || n.Load() != 4 {
		t.Errorf("refused twice: %v after %d calls", err, n.Load())
	}
	n.Store(0)
	ctx := channel.WithOptions(limit(t), channel.Options{Idempotent: true})
	if _, err := ask(ctx, ch, once, ""); err != nil || n.Load() != 4 {
		t.Errorf("idempotent: %v after %d calls", err, n.Load())
	}
}

func TestNoReplica(t *testing.T) {
	r := quick()
	r.WaitReady = -1
	ch := newChannel(t, channel.Config{Resolver: channel.Static(channel.Endpoint{Name: "gone", TCP: "127.0.0.1:1"}), Recovery: r})
	eventually(t, "the trouble is known", func() bool { return stats(ch, "gone").Trouble != nil })
	_, err := ask(limit(t), ch, echo, "")
	if !errors.Is(err, archon.Unavailable) || !strings.Contains(err.Error(), "gone over tcp") {
		t.Errorf("call: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := ch.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait: %v", err)
	}
}

// TestCancelAndClose: calls end by their context, their deadline, Cancel and Close.
func TestCancelAndClose(t *testing.T) {
	block, in := archon.NewMethod("test.Block"), make(chan struct{}, 10)
	v := startServer(t, "a", handlers{block: func(call *archon.ServerCall) error {
		in <- struct{}{}
		<-call.Context().Done()
		return call.Context().Err()
	}})
	ch := newChannel(t, channel.Config{Resolver: channel.Static(channel.Endpoint{TCP: v.tcp})})
	ctx, cancel := context.WithCancel(limit(t))
	go func() { <-in; cancel() }()
	if _, err := ask(ctx, ch, block, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for wait := 50 * time.Millisecond; len(in) == 0; wait *= 2 { // until the server has the call by then
		ctx, cancel = context.WithTimeout(limit(t), wait)
		if _, err := ask(ctx, ch, block, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("deadline: %v", err)
		}
		cancel()
	}
	for len(in) > 0 {
		<-in
	}
	ended := make(chan error, 1)
	call := &channel.Call{Method: block}
	ch.Go(call, func(c *channel.Call) { ended <- c.Err })
	<-in
	ch.Cancel(call, archon.Errorf(archon.Aborted, "enough"))
	if err := <-ended; !errors.Is(err, archon.Aborted) {
		t.Errorf("Cancel: %v", err)
	}
	ch.Cancel(call, errors.New("twice")) // does nothing
	ch.Go(call, func(c *channel.Call) { ended <- c.Err })
	<-in
	ch.Close()
	if err := <-ended; !errors.Is(err, archon.Unavailable) {
		t.Errorf("Close: %v", err)
	}
	ch.Go(call, func(c *channel.Call) { ended <- c.Err })
	if err := <-ended; !errors.Is(err, archon.Unavailable) {
		t.Errorf("after Close: %v", err)
	}
}

// TestCallsOverRDMA: where there is RDMA, calls use it.
func TestCallsOverRDMA(t *testing.T) {
	f := sim.NewFabric(sim.Config{})
	_, openServer := openSim(t, f, "sim:server")
	_, openClient := openSim(t, f, "sim:client")
	dev := newDevice(t, openServer)
	v := startServer(t, "a", nil)
	rdma := v.listen(dev, "127.0.0.1:0")
	ch := newChannel(t, channel.Config{RDMA: newDevice(t, openClient), Resolver: channel.Static(channel.Endpoint{Name: "a", RDMA: rdma, TCP: v.tcp})})
	if got, err := ask(limit(t), ch, echo, "hello"); got != "hello" || err != nil {
		t.Fatal(got, err)
	}
	if st := stats(ch, "a"); st.Path != core.RDMA || len(st.Fallbacks) != 0 {
		t.Errorf("%+v", st)
	}
}
