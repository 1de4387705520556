package archon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStatusesTravel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		custom := errors.New("disk on fire")
		for _, c := range []struct {
			desc      string
			err       error
			want      string
			code      Code
			retryable bool
		}{
			{"an Error", Errorf(NotFound, "no row %d", 7), "NotFound: no row 7", NotFound, false},
			{"a wrapped Error", fmt.Errorf("table 1: %w", Errorf(Aborted, "lock")), "Aborted: table 1: Aborted: lock", Aborted, false},
			{"a retryable Error", &Error{Code: ResourceExhausted, Retryable: true}, "ResourceExhausted", ResourceExhausted, true},
			{"a Code", OutOfRange, "OutOfRange: OutOfRange", OutOfRange, false},
			{"any error", custom, "Unknown: disk on fire", Unknown, false},
			{"OK as an error", OK, "Unknown: OK", Unknown, false},
			{"an unknown code", Code(200), "Unknown: Code(200)", Unknown, false},
			{"a deadline", context.DeadlineExceeded, "DeadlineExceeded: context deadline exceeded", DeadlineExceeded, false},
			{"a very long message", errors.New(strings.Repeat("x", 1<<20)), "Unknown: " + strings.Repeat("x", maxDetail), Unknown, false},
		} {
			for _, inline := range []bool{false, true} {
				s, m := NewServer(ServerConfig{}), NewMethod("test.Fail")
				register := s.Handle
				if inline {
					register = s.HandleInline
				}
				register(m, func(call *ServerCall) error {
					call.Alloc(1000) // is dropped
					return c.err
				})
				client, _, _ := memRPC(t, s, ClientConfig{})
				_, err := CallOn(t, context.Background(), client, m, nil)
				var e *Error
				if err == nil || err.Error() != c.want || !errors.Is(err, c.code) || !errors.As(err, &e) || e.Retryable != c.retryable {
					t.Errorf("%s: got %v", c.desc, err)
				}
			}
		}
	})
}

func TestPanicIsInternal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := 0
		s := NewServer(ServerConfig{OnPanic: func(method string, v any, stack []byte) {
			if v != "boom" || !strings.Contains(string(stack), "TestPanicIsInternal") {
				t.Errorf("panic of %s: %v at %s", method, v, stack)
			}
			heard++
		}})
		inline, worker := NewMethod("test.PanicInline"), NewMethod("test.Panic")
		boom := func(call *ServerCall) error {
			call.Alloc(10)
			panic("boom")
		}
		s.HandleInline(inline, boom)
		s.Handle(worker, boom)
		s.HandleInline(EchoMethod, echo)
		c, _, _ := memRPC(t, s, ClientConfig{})
		for _, m := range []Method{inline, worker} {
			_, err := CallOn(t, context.Background(), c, m, nil)
			if !errors.Is(err, Internal) || !strings.Contains(err.Error(), "boom") {
				t.Errorf("%v: %v", m, err)
			}
		}
		if _, err := CallOn(t, context.Background(), c, EchoMethod, nil); err != nil || heard != 2 {
			t.Errorf("afterwards: %v; %d panics heard of", err, heard)
		}
	})
}

func TestUnimplemented(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := memRPC(t, NewServer(ServerConfig{}), ClientConfig{})
		var e *Error
		if _, err := CallOn(t, context.Background(), c, EchoMethod, []byte("x")); !errors.Is(err, Unimplemented) || !errors.As(err, &e) || !e.Retryable || !strings.Contains(e.Message, "test.Echo") {
			t.Errorf("got %v", err)
		}
	})
}

func TestQueueLimitRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, block, _ := blockServer(t, ServerConfig{Workers: 2, Queue: 3})
		c, _, _ := memRPC(t, s, ClientConfig{})
		refused, start := 0, time.Now()
		for range 10 {
			req, _ := c.Alloc(0)
			c.Go(&Call{Method: block, Request: req, Timeout: time.Minute}, func(call *Call) {
				var e *Error
				if errors.As(call.Err, &e) && e.Code == ResourceExhausted && e.Retryable {
					refused++
				}
			})
			synctest.Wait()
		}
		if refused != 5 || time.Since(start) != 0 {
			t.Errorf("%d of 10 refused after %v, want 5 (2 run, 3 wait) at once", refused, time.Since(start))
		}
		time.Sleep(2 * time.Minute)
	})
}

func TestCallLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, block, _ := blockServer(t, ServerConfig{Workers: 100, MaxCalls: 4})
		c, _, server := memRPC(t, s, ClientConfig{MaxCalls: 20})
		var errs []error
		start := func() error {
			req, _ := c.Alloc(0)
			return c.Go(&Call{Method: block, Request: req, Timeout: time.Hour}, func(call *Call) { errs = append(errs, call.Err) })
		}
		for range 6 {
			if err := start(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if len(errs) != 2 || !errors.Is(errs[0], ResourceExhausted) || !errors.Is(errs[1], ResourceExhausted) {
			t.Errorf("beyond the server's limit: %v", errs)
		}
		// Whoever goes on while refusals pile up is disconnected.
		server.mu.Lock()
		server.refuse = 1 << 30
		server.mu.Unlock()
		for range 5 {
			start()
			synctest.Wait()
		}
		if c.Err() == nil {
			t.Error("an abusive client is still connected")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s, block, _ := blockServer(t, ServerConfig{})
		c, _, _ := memRPC(t, s, ClientConfig{MaxCalls: 2})
		for i := range 3 {
			req, _ := c.Alloc(0)
			err := c.Go(&Call{Method: block, Request: req}, func(*Call) {})
			if wantErr := i == 2; errors.Is(err, ResourceExhausted) != wantErr {
				t.Errorf("call %d: %v", i, err)
			}
		}
	})
}

func TestCallWaitsWhileTheConnectionIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(ServerConfig{})
		slow := NewMethod("test.Slow")
		s.Handle(slow, func(*ServerCall) error {
			time.Sleep(time.Second)
			return nil
		})
		s.HandleInline(EchoMethod, echo)
		c, client, _ := memRPC(t, s, ClientConfig{MaxCalls: 1})
		req, _ := c.Alloc(0)
		if err := c.Go(&Call{Method: slow, Request: req}, func(call *Call) { call.Response.Release() }); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		if _, err := CallOn(t, ctx, c, EchoMethod, nil); !errors.Is(err, DeadlineExceeded) || time.Since(start) != 500*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if _, err := CallOn(t, context.Background(), c, EchoMethod, nil); err != nil || time.Since(start) < time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		client.mu.Lock()
		client.refuse = 10
		client.mu.Unlock()
		if _, err := CallOn(t, context.Background(), c, EchoMethod, nil); err != nil {
			t.Errorf("send queue full: %v", err)
		}
	})
}

func TestResponseMemoryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(ServerConfig{MaxResponseBytes: 1000})
		m := NewMethod("test.Size")
		s.HandleInline(m, func(call *ServerCall) error {
			if _, err := call.Alloc(600); err != nil {
				return err
			}
			_, err := call.Alloc(int(call.Payload()[0]) * 10) // replaces it
			return err
		})
		c, _, _ := memRPC(t, s, ClientConfig{})
		for range 5 { // what was answered does not count any more
			if got, err := CallOn(t, context.Background(), c, m, []byte{100}); err != nil || len(got) != 1000 {
				t.Errorf("1000 bytes: %d, %v", len(got), err)
			}
			if _, err := CallOn(t, context.Background(), c, m, []byte{101}); !errors.Is(err, ResourceExhausted) {
				t.Errorf("1010 bytes: %v", err)
			}
		}
		synctest.Wait()
		if n := s.respSize.Load(); n != 0 {
			t.Errorf("%d bytes counted with nothing outstanding", n)
		}
	})
}

func TestRegistration(t *testing.T) {
	s := NewServer(ServerConfig{})
	for i := range 100 {
		if err := s.HandleInline(NewMethod(fmt.Sprint("m", i)), echo); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		m := NewMethod(fmt.Sprint("m", i))
		if got := s.methods.find(m.id); got == nil || got.name != m.name {
			t.Errorf("%v: found %v", m, got)
		}
	}
	if s.methods.find(NewMethod("m100").id) != nil {
		t.Error("found a method that is not there")
	}
	if err := s.Handle(NewMethod("m5"), echo); err == nil {
		t.Error("registered a name twice")
	}
	if err := s.Handle(NewMethod("nil"), nil); err == nil {
		t.Error("registered no handler")
	}
	l, err := TCP{}.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Serve(ctx, l); !errors.Is(err, context.Canceled) {
		t.Errorf("serve with an ended context: %v", err)
	}
	if err := s.Handle(NewMethod("late"), echo); err == nil {
		t.Error("registered while serving")
	}
	s.Close()
	s.Close()
	if err := s.Serve(context.Background(), l); !errors.Is(err, ErrServerClosed) {
		t.Errorf("serve after close: %v", err)
	}
}
