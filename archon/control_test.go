package archon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, block, _ := blockServer(t, ServerConfig{Incarnation: 42, Workers: 1, MaxCalls: 1})
		c, _, server := memRPC(t, s, ClientConfig{MaxCalls: 1})
		req, _ := c.Alloc(0)
		if err := c.Go(&Call{Method: block, Request: req, Timeout: time.Hour}, func(*Call) {}); err != nil {
			t.Fatal(err)
		}
		before := c.Received()
		for range 20 { // with all calls outstanding and the one worker busy
			if n, err := c.Ping(context.Background()); n != 42 || err != nil {
				t.Fatalf("incarnation %d, %v", n, err)
			}
		}
		if n := c.Received() - before; n != 20 {
			t.Errorf("%d messages received, want 20", n)
		}
		server.setStall(true)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := c.Ping(ctx); !errors.Is(err, DeadlineExceeded) {
			t.Errorf("from a server that hangs: %v", err)
		}
		ends := 0
		for i := range 9 {
			err := c.GoPing(&Ping{Timeout: time.Second}, func(p *Ping) {
				if !errors.Is(p.Err, DeadlineExceeded) {
					t.Errorf("ping: %v", p.Err)
				}
				ends++
			})
			if (err != nil) != (i == maxPings) {
				t.Errorf("ping %d: %v", i, err)
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if ends != maxPings {
			t.Errorf("%d of %d pings ended", ends, maxPings)
		}
	})
	if a, b := newIncarnation(), newIncarnation(); a == b || a == 0 {
		t.Errorf("incarnations %d and %d", a, b)
	}
}

func TestOneWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, got, m := NewServer(ServerConfig{Workers: 1, Queue: 2}), 0, NewMethod("test.Note")
		s.Handle(m, func(call *ServerCall) error {
			if !call.OneWay() {
				t.Error("is not one-way")
			}
			time.Sleep(time.Second)
			got++
			return Errorf(Aborted, "nobody hears")
		})
		c, _, _ := memRPC(t, s, ClientConfig{MaxCalls: 1})
		for range 5 {
			if _, err := c.Do(context.Background(), &Invocation{Method: m, OneWay: true}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if st := s.Stats(); got != 3 || st.Overloaded != 2 || st.OneWayFailed != 5 {
			t.Errorf("%d of 5 ran, want 3 (1 runs, 2 wait); %+v", got, st)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := c.Do(ctx, &Invocation{Method: m, OneWay: true}); !errors.Is(err, Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	})
}

func TestShutdownDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(ServerConfig{})
		slow := NewMethod("test.Slow")
		s.Handle(slow, func(*ServerCall) error {
			time.Sleep(time.Minute)
			return nil
		})
		c, _, server := memRPC(t, s, ClientConfig{})
		var ended []error
		req, _ := c.Alloc(0)
		if err := c.Go(&Call{Method: slow, Request: req}, func(call *Call) {
			ended = append(ended, call.Err)
			call.Response.Release()
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		server.setStall(true) // go away is on its way
		down, start := make(chan error, 1), time.Now()
		go func() { down <- s.Shutdown(context.Background()) }()
		synctest.Wait()
		req, _ = c.Alloc(0)
		c.Go(&Call{Method: slow, Request: req}, func(call *Call) { ended = append(ended, call.Err) })
		synctest.Wait()
		server.setStall(false)
		<-c.Draining()
		if _, err := CallOn(t, context.Background(), c, slow, nil); !errors.Is(err, Unavailable) || !IsRetryable(err) || !strings.Contains(err.Error(), "shutting down") {
			t.Errorf("a call after it: %v", err)
		}
		if _, err := c.Do(context.Background(), &Invocation{Method: slow, OneWay: true}); !IsRetryable(err) {
			t.Errorf("a one-way call after it: %v", err)
		}
		if err := <-down; err != nil || time.Since(start) != time.Minute {
			t.Errorf("shutdown: %v after %v", err, time.Since(start))
		}
		synctest.Wait()
		if len(ended) != 2 || !errors.Is(ended[0], Unavailable) || !IsRetryable(ended[0]) || ended[1] != nil {
			t.Errorf("the call on its way and the call under way ended with %v", ended)
		}
		if n := s.Stats().Draining; n != 1 {
			t.Errorf("%d calls counted as refused, want 1", n)
		}
	})
}

func TestShutdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, block, ended := blockServer(t, ServerConfig{})
		c, _, _ := memRPC(t, s, ClientConfig{})
		req, _ := c.Alloc(0)
		var got error
		c.Go(&Call{Method: block, Request: req}, func(call *Call) { got = call.Err })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("shutdown: %v after %v", err, time.Since(start))
		}
		<-ended
		synctest.Wait()
		if !errors.Is(got, Unavailable) {
			t.Errorf("the call that was cut off: %v", got)
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

func TestInterceptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trace, served []string
		type key struct{}
		server := func(name string) Interceptor {
			return func(call *ServerCall, next Handler) error {
				served = append(served, name)
				if v, ok := call.Metadata().Get("deny"); ok {
					return Errorf(PermissionDenied, "%s", v)
				}
				call.SetContext(context.WithValue(call.Context(), key{}, name))
				return next(call)
			}
		}
		s := NewServer(ServerConfig{Interceptors: []Interceptor{server("s1"), server("s2")}})
		s.HandleInline(EchoMethod, func(call *ServerCall) error {
			if call.Context().Value(key{}) != "s2" {
				t.Errorf("context has %v", call.Context().Value(key{}))
			}
			return echo(call)
		})
		s.HandleStream(countMethod, func(*ServerCall, *Sender) error { return nil })
		client := func(name string) ClientInterceptor {
			return func(ctx context.Context, inv *Invocation, next Invoker) (Response, error) {
				trace = append(trace, name)
				if name == "c2" && inv.OneWay {
					if err := inv.Metadata.Add("deny", "no one-way"); err != nil {
						return Response{}, err
					}
				}
				r, err := next.Do(ctx, inv)
				trace = append(trace, "/"+name)
				return r, err
			}
		}
		c, _, _ := memRPC(t, s, ClientConfig{
			Interceptors: []ClientInterceptor{client("c1"), client("c2")},
			StreamInterceptors: []StreamInterceptor{func(ctx context.Context, inv *Invocation, next Opener) (*Stream, error) {
				trace = append(trace, "cs")
				return next.Open(ctx, inv)
			}},
		})
		for _, want := range []struct {
			call  func() error
			trace string
		}{
			{func() error {
				r, err := c.Do(context.Background(), &Invocation{Method: EchoMethod, Request: Bytes("x")})
				r.Release()
				return err
			}, "c1 c2 /c2 /c1 s1 s2"},
			{func() error {
				_, err := c.Do(context.Background(), &Invocation{Method: EchoMethod, OneWay: true})
				return err
			}, "c1 c2 /c2 /c1 s1"},
			{func() error {
				s, err := c.Open(context.Background(), &Invocation{Method: countMethod})
				synctest.Wait()
				s.Close()
				return err
			}, "cs s1 s2"},
		} {
			trace, served = nil, nil
			err := want.call()
			synctest.Wait()
			if got := strings.Join(append(trace, served...), " "); err != nil || got != want.trace {
				t.Errorf("%v, ran %q, want %q", err, got, want.trace)
			}
		}
	})
}
