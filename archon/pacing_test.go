package archon

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pacedRPC gives a client of test.Big, whose responses of 600 bytes are held up, and
// counts how often its handler ran.
func pacedRPC(t *testing.T) (start func(size int, timeout time.Duration), c *Client, server *memSocket, ran, ok, expired *atomic.Int64) {
	s, big := NewServer(ServerConfig{MaxUnsent: 1000}), NewMethod("test.Big")
	ran, ok, expired = new(atomic.Int64), new(atomic.Int64), new(atomic.Int64)
	s.HandleInline(big, func(call *ServerCall) error {
		ran.Add(1)
		_, err := call.Alloc(600)
		return err
	})
	c, _, server = memRPC(t, s, ClientConfig{})
	server.setStall(true)
	start = func(size int, timeout time.Duration) {
		req, _ := c.Alloc(size)
		err := c.Go(&Call{Method: big, Request: req, Timeout: timeout}, func(call *Call) {
			switch {
			case call.Err == nil:
				ok.Add(1)
			case errors.Is(call.Err, DeadlineExceeded):
				expired.Add(1)
			}
			call.Response.Release()
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	}
	return start, c, server, ran, ok, expired
}

func TestUnsentResponsesHoldHandlersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, _, server, ran, ok, expired := pacedRPC(t)
		for range 10 {
			start(8, 0)
		}
		if n := ran.Load(); n != 2 {
			t.Errorf("%d handlers ran ahead of the socket, want 2: 640 bytes wait, then 1280", n)
		}
		for range 5 {
			start(8, time.Second)
		}
		time.Sleep(time.Minute)
		server.setStall(false)
		synctest.Wait()
		if ran.Load() != 10 || ok.Load() != 10 || expired.Load() != 5 {
			t.Errorf("%d ran, %d succeeded, %d expired in line; want 10, 10, 5", ran.Load(), ok.Load(), expired.Load())
		}
		start(8, 0)
		if ran.Load() != 11 {
			t.Error("a call alone did not run at once")
		}
	})
}

func TestParkedRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, _, _, ran, _, _ := pacedRPC(t)
		for range 20 {
			start(1<<20-HeaderSize, 0)
		}
		if n := ran.Load(); n != 2+20-2-maxParked>>20 {
			t.Errorf("%d handlers ran, want 2 and those beyond the bound of the line", n)
		}
		// The end comes with calls in line: none may leak.
	})
}
