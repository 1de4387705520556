package channel_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
)

// TestHedgeAndTimeout: a replica whose handlers hang. Hedges, or without them the
// time-out of attempts, have the other one answer, and the loser's handler is
// cancelled. The control has neither, and its calls hang.
func TestHedgeAndTimeout(t *testing.T) {
	m := archon.NewMethod("test.Maybe")
	var hang atomic.Bool
	cancelled := make(chan struct{}, 10_000)
	a := startServer(t, "a", handlers{m: func(call *archon.ServerCall) error {
		if hang.Load() {
			<-call.Context().Done()
			cancelled <- struct{}{}
		}
		return nil
	}})
	b := startServer(t, "b", handlers{m: func(*archon.ServerCall) error { return nil }})
	list := channel.Static(channel.Endpoint{Name: "a", TCP: a.tcp}, channel.Endpoint{Name: "b", TCP: b.tcp})
	for _, tt := range []struct {
		desc     string
		recovery channel.Recovery
		control  bool
	}{
		{"hedge", channel.Recovery{AttemptTimeout: -1, EjectShare: -1, RetryBurst: 100}, false},
		{"time-out", channel.Recovery{AttemptTimeout: 500 * time.Millisecond, HedgeQuantile: -1, EjectShare: -1, RetryBurst: 100}, false},
		{"neither", channel.Recovery{AttemptTimeout: -1, HedgeQuantile: -1}, true},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			hang.Store(false)
			ch := newChannel(t, channel.Config{Resolver: list, Recovery: tt.recovery, Idempotent: []archon.Method{m}})
			for range 500 { // the hedge learns what is usual
				if _, err := ask(limit(t), ch, m, ""); err != nil {
					t.Fatal(err)
				}
			}
			before := ch.Stats()
			hang.Store(true)
			const calls = 20
			ended := make(chan error, calls)
			for i := range uint64(calls) {
				ch.Go(&channel.Call{Method: m, Affinity: i + 1}, func(c *channel.Call) { c.Response.Release(); ended <- c.Err })
			}
			if tt.control {
				eventually(t, "the calls of b end", func() bool { return len(ended) > 0 })
				if len(ended) == calls {
					t.Error("control: no call hung")
				}
				return // Close ends the rest
			}
			for range calls {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			<-cancelled
			if st := ch.Stats(); (tt.desc == "hedge") != (st.Hedged > before.Hedged) || st.Attempts == before.Attempts+calls {
				t.Errorf("%+v", st.CallStats)
			}
		})
	}
}

// TestOneWayAndStreams reach a replica too.
func TestOneWayAndStreams(t *testing.T) {
	got := make(chan string, 1)
	one, count := archon.NewMethod("test.One"), archon.NewMethod("test.Count")
	s := archon.NewServer(archon.ServerConfig{})
	defer s.Close()
	s.Handle(one, func(call *archon.ServerCall) error { got <- string(call.Payload()); return nil })
	s.HandleStream(count, func(_ *archon.ServerCall, out *archon.Sender) error {
		for i := range 3 {
			b, err := out.Alloc(1)
			if err != nil {
				return err
			}
			b.Payload()[0] = byte(i)
			if err := out.Send(b); err != nil {
				return err
			}
		}
		return nil
	})
	l, err := archon.TCP{}.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(context.Background(), l)
	ch := newChannel(t, channel.Config{Resolver: channel.Static(channel.Endpoint{TCP: l.Addr().String()})})
	if _, err := ch.Do(limit(t), &archon.Invocation{Method: one, Request: archon.Bytes("x"), OneWay: true}); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "x" {
		t.Errorf("one-way: %q", text)
	}
	stream, err := ch.Open(limit(t), &archon.Invocation{Method: count})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for i := range 3 {
		item, err := stream.Recv()
		if err != nil || item.Payload()[0] != byte(i) {
			t.Fatalf("item %d: %v", i, err)
		}
		item.Release()
	}
	if _, err := stream.Recv(); err != io.EOF {
		t.Errorf("end: %v", err)
	}
}
