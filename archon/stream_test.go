package archon

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var countMethod = NewMethod("test.Count")

// countServer streams numbered messages: as many as the request says, of the size that it
// says, and then fails if it says so. sent tells how far it got, ended how it ended.
func countServer(t *testing.T, cfg ServerConfig) (s *Server, sent *atomic.Int64, ended chan error) {
	t.Helper()
	s, sent, ended = NewServer(cfg), new(atomic.Int64), make(chan error, 16)
	err := s.HandleStream(countMethod, func(call *ServerCall, out *Sender) error {
		n, size, fail := call.Payload()[0], int(binary.LittleEndian.Uint32(call.Payload()[1:])), call.Payload()[5] != 0
		err := func() error {
			for i := range n {
				b, err := out.Alloc(size)
				if err != nil {
					return err
				}
				b.Payload()[0] = i
				if err := out.Send(b); err != nil {
					return err
				}
				sent.Store(int64(out.Sent()))
			}
			if fail {
				return Errorf(Aborted, "as asked")
			}
			return nil
		}()
		ended <- err
		return err
	})
	if err := errors.Join(err, s.HandleInline(EchoMethod, echo)); err != nil {
		t.Fatal(err)
	}
	return s, sent, ended
}

func countRequest(n, size, window int, fail bool) *Invocation {
	b := binary.LittleEndian.AppendUint32([]byte{byte(n)}, uint32(size))
	if fail {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return &Invocation{Method: countMethod, Request: Bytes(b), Window: window}
}

func openCount(t *testing.T, ctx context.Context, c *Client, inv *Invocation) *Stream {
	t.Helper()
	s, err := c.Open(ctx, inv)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStreamDeliversAllInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _, _ := countServer(t, ServerConfig{})
		c, _, _ := memRPC(t, srv, ClientConfig{})
		for _, window := range []int{0, 1, 100, 1000} { // one byte lets one message at a time through
			for _, fail := range []bool{false, true} {
				s := openCount(t, context.Background(), c, countRequest(200, 50, window, fail))
				for i := range 200 {
					m, err := s.Recv()
					if err != nil || len(m.Payload()) != 50 || m.Payload()[0] != byte(i) {
						t.Fatalf("message %d: %v", i, err)
					}
					m.Release()
				}
				for range 2 { // and stays so
					if _, err := s.Recv(); fail && !errors.Is(err, Aborted) || !fail && err != io.EOF {
						t.Errorf("end: %v", err)
					}
				}
				s.Close()
			}
		}
		if n := srv.respSize.Load(); n != 0 {
			t.Errorf("%d bytes counted with nothing outstanding", n)
		}
	})
}

func TestStreamIsHeldUpByItsReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, sent, _ := countServer(t, ServerConfig{})
		c, _, _ := memRPC(t, srv, ClientConfig{})
		s := openCount(t, context.Background(), c, countRequest(200, 60, 1000, false))
		time.Sleep(time.Hour)
		if sent.Load() != 10 { // of 100 bytes with the header
			t.Errorf("%d messages sent into a window of 10", sent.Load())
		}
		for range 5 {
			m, err := s.Recv()
			if err != nil {
				t.Fatal(err)
			}
			m.Release()
		}
		synctest.Wait()
		if sent.Load() != 15 {
			t.Errorf("%d messages sent after 5 were received, want 15", sent.Load())
		}
		// Others are not held up meanwhile.
		if _, err := CallOn(t, context.Background(), c, EchoMethod, []byte("x")); err != nil {
			t.Error(err)
		}
		s.Close()
		if _, err := s.Recv(); !errors.Is(err, Canceled) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestStreamEndsReachTheHandler(t *testing.T) {
	for _, c := range []struct {
		desc string
		end  func(s *Stream, cancel func(), c *Client)
		want Code // at the client
		has  error
	}{
		{"close", func(s *Stream, _ func(), _ *Client) { s.Close() }, Canceled, context.Canceled},
		{"cancel", func(_ *Stream, cancel func(), _ *Client) { cancel() }, Canceled, context.Canceled},
		{"deadline", func(*Stream, func(), *Client) { time.Sleep(2 * time.Minute) }, DeadlineExceeded, context.DeadlineExceeded},
		{"client closed", func(_ *Stream, _ func(), c *Client) { c.Close() }, Unavailable, context.Canceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			srv, _, ended := countServer(t, ServerConfig{})
			client, _, _ := memRPC(t, srv, ClientConfig{})
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			s := openCount(t, ctx, client, countRequest(200, 60, 1000, false))
			synctest.Wait()
			c.end(s, cancel, client)
			if err := <-ended; !errors.Is(err, c.has) {
				t.Errorf("%s: handler: %v", c.desc, err)
			}
			synctest.Wait()
			var err error
			for err == nil {
				var m Response
				m, err = s.Recv()
				m.Release()
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%s: client: %v", c.desc, err)
			}
			s.Close()
			synctest.Wait()
			if n := srv.Stats().Streams; n != 0 {
				t.Errorf("%s: %d streams under way", c.desc, n)
			}
		})
	}
}

func TestStreamSurvivesFullQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _, _ := countServer(t, ServerConfig{})
		c, client, server := memRPC(t, srv, ClientConfig{})
		s := openCount(t, context.Background(), c, countRequest(200, 60, 300, false))
		for i := range 200 {
			if i%20 == 0 {
				for _, end := range []*memSocket{client, server} {
					end.mu.Lock()
					end.refuse = 3
					end.mu.Unlock()
				}
			}
			m, err := s.Recv()
			if err != nil || m.Payload()[0] != byte(i) {
				t.Fatalf("message %d: %v", i, err)
			}
			m.Release()
		}
		if _, err := s.Recv(); err != io.EOF {
			t.Errorf("end: %v", err)
		}
	})
}

func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _, _ := countServer(t, ServerConfig{MaxStreams: 2})
		c, _, _ := memRPC(t, srv, ClientConfig{})
		for i := range 3 {
			s := openCount(t, context.Background(), c, countRequest(200, 60, 1000, false))
			synctest.Wait()
			m, err := s.Recv()
			if i == 2 && (!errors.Is(err, ResourceExhausted) || !IsRetryable(err)) || i < 2 && err != nil {
				t.Errorf("stream %d: %v", i, err)
			}
			m.Release()
			defer s.Close()
		}
		for _, window := range []int{-1, maxWindow + 1} {
			if _, err := c.Open(context.Background(), countRequest(1, 1, window, false)); !errors.Is(err, InvalidArgument) {
				t.Errorf("window of %d: %v", window, err)
			}
		}
	})
}

// TestStreamWindowIsKept: who sends beyond it, or grants what was not sent, is
// disconnected.
func TestStreamWindowIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memPair(t)
		c := NewClient(a, ClientConfig{})
		b.OnMessage(func(m []byte, err error) { // a server that does not count
			if err != nil {
				return
			}
			h, _ := parseHeader(m)
			b.Free(m)
			for range 4 {
				raw, _ := b.Alloc(HeaderSize + 60)
				item := header{kind: kindItem, id: h.id, payload: 60}
				item.put(raw)
				b.Post(raw, func(err error) {
					if err == nil {
						b.Free(raw)
					}
				})
			}
		})
		s := openCount(t, context.Background(), c, countRequest(4, 60, 250, false))
		synctest.Wait()
		if !errors.Is(c.Err(), ErrProtocol) {
			t.Errorf("3 of 100 bytes fit, the client says: %v", c.Err())
		}
		s.Close()
		c.Close()
		<-c.Done()
	})
	synctest.Test(t, func(t *testing.T) {
		srv, _, _ := countServer(t, ServerConfig{})
		c, _, _ := memRPC(t, srv, ClientConfig{})
		s := openCount(t, context.Background(), c, countRequest(2, 60, 1000, false))
		synctest.Wait()
		c.tell(header{kind: kindWindow, id: s.call.id, window: 1}) // the stream is over: ignored
		synctest.Wait()
		if c.Err() != nil {
			t.Errorf("window for an ended stream: %v", c.Err())
		}
		s.Close()
		s = openCount(t, context.Background(), c, countRequest(200, 60, 1000, false))
		synctest.Wait()
		c.tell(header{kind: kindWindow, id: s.call.id, window: 1001})
		synctest.Wait()
		if c.Err() == nil {
			t.Error("a window that was not sent was taken")
		}
		s.Close()
	})
}
