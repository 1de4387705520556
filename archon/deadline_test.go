package archon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// blockServer has test.Block, which waits on a worker until its context ends and
// then reports why on the channel.
func blockServer(t *testing.T, cfg ServerConfig) (*Server, Method, chan error) {
	t.Helper()
	block, ended := NewMethod("test.Block"), make(chan error, 16)
	s := NewServer(cfg)
	err := s.Handle(block, func(call *ServerCall) error {
		<-call.Context().Done()
		ended <- call.Context().Err()
		return call.Context().Err()
	})
	if err := errors.Join(err, s.HandleInline(EchoMethod, echo)); err != nil {
		t.Fatal(err)
	}
	return s, block, ended
}

func TestDeadlineTravels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, block, ended := blockServer(t, ServerConfig{})
		c, _, _ := memRPC(t, s, ClientConfig{})
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		start := time.Now()
		_, err := CallOn(t, ctx, c, block, nil)
		if !errors.Is(err, DeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("client: %v", err)
		}
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("handler: %v", err)
		}
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("took %v, want 5s", d)
		}
	})
}

func TestGoTimesOutInOrderAndDropsLateResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(ServerConfig{})
		late := NewMethod("test.Late")
		s.Handle(late, func(call *ServerCall) error {
			time.Sleep(time.Minute)
			_, err := call.Alloc(100)
			return err
		})
		c, _, _ := memRPC(t, s, ClientConfig{})
		var ended []time.Duration
		start := time.Now()
		for _, timeout := range []time.Duration{3, 1, 2, 0} { // seconds; 0: none
			req, _ := c.Alloc(1)
			err := c.Go(&Call{Method: late, Request: req, Timeout: timeout * time.Second}, func(call *Call) {
				ended = append(ended, time.Since(start))
				if timeout != 0 && !errors.Is(call.Err, DeadlineExceeded) || timeout == 0 && call.Err != nil {
					t.Errorf("timeout %v s: %v", timeout, call.Err)
				}
				call.Response.Release()
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want := []time.Duration{1 * time.Second, 2 * time.Second, 3 * time.Second, time.Minute}
		if len(ended) != 4 || ended[0] != want[0] || ended[1] != want[1] || ended[2] != want[2] || ended[3] != want[3] {
			t.Errorf("calls ended after %v, want %v", ended, want)
		}
	})
}

func TestExpiredInQueueIsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(ServerConfig{Workers: 1})
		slow, ran := NewMethod("test.Slow"), 0
		s.Handle(slow, func(*ServerCall) error {
			ran++
			time.Sleep(10 * time.Second)
			return nil
		})
		c, _, _ := memRPC(t, s, ClientConfig{})
		for range 5 {
			req, _ := c.Alloc(0)
			if err := c.Go(&Call{Method: slow, Request: req, Timeout: 5 * time.Second}, func(*Call) {}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if ran != 1 {
			t.Errorf("%d handlers ran, want 1: the others had expired", ran)
		}
	})
}

func TestCancellationReachesTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, block, ended := blockServer(t, ServerConfig{})
		c, _, _ := memRPC(t, s, ClientConfig{})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		if _, err := CallOn(t, ctx, c, block, nil); !errors.Is(err, Canceled) || !errors.Is(err, context.Canceled) {
			t.Errorf("client: %v", err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("handler: %v", err)
		}
		if _, err := CallOn(t, ctx, c, block, nil); !errors.Is(err, Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
		// A cancel for a call that is over, or never was, does nothing.
		c.tellCanceled(newCallID(0, 77))
		c.tellCanceled(newCallID(1<<31, 0))
		if _, err := CallOn(t, context.Background(), c, EchoMethod, []byte("x")); err != nil {
			t.Errorf("after: %v", err)
		}
	})
}

func TestCancelEndsAGoCallOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, block, _ := blockServer(t, ServerConfig{})
		c, _, _ := memRPC(t, s, ClientConfig{})
		req, _ := c.Alloc(0)
		ends, why := 0, Errorf(Aborted, "enough")
		cl := &Call{Method: block, Request: req}
		if err := c.Go(cl, func(*Call) { ends++ }); err != nil {
			t.Fatal(err)
		}
		c.Cancel(cl, why)
		c.Cancel(cl, why)
		synctest.Wait()
		if ends != 1 || !errors.Is(cl.Err, Aborted) {
			t.Errorf("done ran %d times, err %v", ends, cl.Err)
		}
	})
}
