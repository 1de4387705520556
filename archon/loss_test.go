package archon

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

func TestLostConnectionEndsCallsWithTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, block, ended := blockServer(t, ServerConfig{})
		c, _, server := memRPC(t, s, ClientConfig{})
		var errs []error
		for range 10 {
			req, _ := c.Alloc(3)
			c.Go(&Call{Method: block, Request: req}, func(call *Call) { errs = append(errs, call.Err) })
		}
		synctest.Wait()
		server.Close()
		<-c.Done()
		if len(errs) != 10 {
			t.Fatalf("%d calls ended, want 10", len(errs))
		}
		for _, err := range errs {
			if !errors.Is(err, Unavailable) || err.Error() != "Unavailable: connection lost: closed by the peer" {
				t.Errorf("call: %v", err)
			}
		}
		req, _ := c.Alloc(0)
		if err := c.Go(&Call{Method: block, Request: req}, func(*Call) { t.Error("done ran") }); !errors.Is(err, Unavailable) {
			t.Errorf("afterwards: %v", err)
		}
		if !errors.Is(c.Err(), Unavailable) {
			t.Errorf("Err: %v", c.Err())
		}
		for range 8 { // as many as there are workers by default on 2 CPUs, or more
			if len(ended) == 0 {
				break
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("handler: %v", err)
			}
		}
	})
}

func TestLostRequestFailsItsCallAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client, server := memRPC(t, EchoServer(t, ServerConfig{}), ClientConfig{})
		client.lose = 1
		if _, err := CallOn(t, context.Background(), c, EchoMethod, []byte("a")); !errors.Is(err, Unavailable) || !errors.Is(err, errLost) {
			t.Errorf("lost: %v", err)
		}
		if _, err := CallOn(t, context.Background(), c, EchoMethod, []byte("b")); err != nil {
			t.Errorf("next: %v", err)
		}
		// A lost response leaves the call to its deadline, and the server's account right.
		server.lose = 1
		ctx, cancel := context.WithTimeout(context.Background(), 1e9)
		defer cancel()
		if _, err := CallOn(t, ctx, c, EchoMethod, []byte("c")); !errors.Is(err, DeadlineExceeded) {
			t.Errorf("lost response: %v", err)
		}
	})
}

func TestRefusedSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client, server := memRPC(t, EchoServer(t, ServerConfig{}), ClientConfig{})
		client.refuse = 1
		req, _ := c.Alloc(1)
		err := c.Go(&Call{Method: EchoMethod, Request: req}, func(*Call) { t.Error("done ran") })
		var e *Error
		if !errors.Is(err, ResourceExhausted) || !errors.Is(err, ErrQueueFull) || !errors.As(err, &e) || !e.Retryable {
			t.Errorf("refused request: %v", err)
		}
		// The server keeps refused responses and sends them when there is room.
		for _, refuse := range []int{1, 5, 50} {
			server.refuse = refuse
			left := 20
			for range left {
				req, _ := c.Alloc(8)
				c.Go(&Call{Method: EchoMethod, Request: req}, func(call *Call) {
					if call.Err != nil {
						t.Errorf("refused response: %v", call.Err)
					}
					call.Response.Release()
					left--
				})
			}
			time.Sleep(time.Second) // many times retryBacklog
			synctest.Wait()
			if left != 0 {
				t.Errorf("%d refused: %d calls without response", refuse, left)
			}
		}
		// An end with a backlog leaks nothing.
		server.refuse = 1 << 30
		for range 20 {
			req, _ := c.Alloc(8)
			c.Go(&Call{Method: EchoMethod, Request: req}, func(call *Call) { call.Response.Release() })
		}
		synctest.Wait()
	})
}

func TestTCPConnectionKilledInMidCall(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // welcomes, reads a little and hangs up
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		readHello(conn)
		conn.Write(appendPrelude(nil, welcomeOK, 1<<20))
		io.ReadFull(conn, make([]byte, 20))
		conn.Write([]byte{200, 0, 0, 0, 1, 2, 3}) // the beginning of a message
	}()
	c := DialTo(t, TCP{}, l.Addr().String(), ClientConfig{})
	_, err = CallOn(t, context.Background(), c, EchoMethod, make([]byte, 100))
	if !errors.Is(err, Unavailable) {
		t.Errorf("call: %v", err)
	}
	<-c.Done()
	if !errors.Is(c.Err(), io.ErrUnexpectedEOF) && !errors.As(c.Err(), new(*net.OpError)) {
		t.Errorf("cause: %v", c.Err())
	}
}
