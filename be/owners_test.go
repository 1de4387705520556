package be_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/sim"
)

// TestOwnersAreHeldToTheirRules: with Debug.Check each use of a buffer that is not the
// application's is told, by the call or by Close, with the call that took it. In the
// control, uses by the rules, nobody hears of anything.
func TestOwnersAreHeldToTheirRules(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, s *be.Socket, e *ownerEnv) error
		why  string // parts of the error of do, or of Close
	}{
		{"posted twice", func(t *testing.T, s *be.Socket, e *ownerEnv) error {
			b := alloc(t, s.Node(), 1000, 1)
			e.post(t, b)
			return s.Post(b, func(error) {})
		}, "Post of 1000 bytes at 0x|it is the node's, until done is called, since Post by |owners_test.go:"},
		{"sent while it is posted", func(t *testing.T, s *be.Socket, e *ownerEnv) error {
			b := alloc(t, s.Node(), 100_000, 1)
			e.post(t, b)
			return s.Send(limit(t), b)
		}, "Send of 100000 bytes|until done is called, since Post by "},
		{"gathered while it is posted", func(t *testing.T, s *be.Socket, e *ownerEnv) error {
			b := alloc(t, s.Node(), 1000, 1)
			e.post(t, b)
			return s.PostGather(nil, [][]byte{b[10:20]}, func(error) {})
		}, "PostGather by |of 10 bytes|since Post by "},
		{"freed while it is posted", func(t *testing.T, s *be.Socket, e *ownerEnv) error {
			b := alloc(t, s.Node(), 1000, 1)
			e.post(t, b)
			s.Node().Free(b)
			return nil
		}, "free of 1000 bytes|since Post by "},
		{"written to while it is posted", func(t *testing.T, s *be.Socket, e *ownerEnv) error {
			b := alloc(t, s.Node(), 9000, 1)
			e.post(t, b)
			b[8999]++
			return nil
		}, "write of 9000 bytes|since Post by "},
		{"freed after an error", func(t *testing.T, s *be.Socket, e *ownerEnv) error {
			b := alloc(t, s.Node(), 9000, 1)
			held, goOn := make(chan struct{}), make(chan struct{}) // the worker, which would take it back
			if err := s.PostContext(&overSoon{Context: expired()}, alloc(t, s.Node(), 10, 0), func(error) { close(held); <-goOn }); err != nil {
				t.Fatal(err)
			}
			<-held
			if err := s.Send(&overSoon{Context: expired()}, b); err == nil {
				t.Error("sent")
			}
			s.Node().Free(b)
			close(goOn)
			return nil
		}, "free of 9000 bytes|since Send by "},
		{"posted after it was freed", func(t *testing.T, s *be.Socket, e *ownerEnv) error {
			b := alloc(t, s.Node(), 1000, 1)
			s.Node().Free(b)
			return s.Post(b, func(error) {})
		}, "Post of 1000 bytes|it is free"},
		{"posted from its middle", func(t *testing.T, s *be.Socket, e *ownerEnv) error {
			b := alloc(t, s.Node(), 1000, 1)
			defer s.Node().Free(b)
			return s.Post(b[8:], func(error) {})
		}, "Post of 992 bytes|within one"},
		{"freed while it is published", func(t *testing.T, s *be.Socket, e *ownerEnv) error {
			b := alloc(t, s.Node(), 1000, 1)
			pub, err := s.Publish(b)
			if err != nil {
				t.Fatal(err)
			}
			s.Node().Free(b)
			e.resume()
			e.took.Wait()
			s.Close()
			<-pub.Done()
			s.Node().Free(b)
			return nil
		}, "free of 1000 bytes|in use since Publish by "},
		{"posted while it is exposed", func(t *testing.T, s *be.Socket, e *ownerEnv) error {
			b := alloc(t, s.Node(), 1000, 1)
			x, err := s.Node().Expose(b)
			if err != nil {
				t.Fatal(err)
			}
			err = s.Post(b, func(error) {})
			x.Close()
			s.Node().Free(b)
			return err
		}, "Post of 1000 bytes|in use since Expose by "},
		{"freed while it is gathered", func(t *testing.T, s *be.Socket, e *ownerEnv) error {
			b, done := alloc(t, s.Node(), 1000, 1), make(chan struct{})
			if err := s.PostGather(b[:10], [][]byte{nil, b[500:]}, func(error) { close(done) }); err != nil {
				t.Fatal(err)
			}
			s.Node().Free(b)
			e.resume()
			<-done
			s.Node().Free(b)
			return nil
		}, "free of 1000 bytes|in use since PostGather by "},
		{"by the rules", func(t *testing.T, s *be.Socket, e *ownerEnv) error {
			b, done := alloc(t, s.Node(), 1000, 1), make(chan struct{})
			for range 2 {
				if err := s.PostGather(b[:10], [][]byte{b[5:50], nil}, func(error) { done <- struct{}{} }); err != nil {
					t.Fatal(err)
				}
			}
			e.resume()
			<-done
			<-done
			b[0]++
			if err := s.Send(limit(t), b); err != nil {
				t.Fatal(err)
			}
			b[1]++
			e.post(t, b[:100])
			return nil
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := ownerCase(t, tt.do)
			var owner *be.OwnerError
			if errors.As(err, &owner) != (tt.why != "") {
				t.Fatalf("error %v", err)
			}
			for _, part := range strings.Split(tt.why, "|") {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %q", part, err)
				}
			}
		})
	}
}

// overSoon is a context that has ended when it is asked for the second time.
type overSoon struct {
	context.Context
	asked bool
}

func (c *overSoon) Err() error {
	if !c.asked {
		c.asked = true
		return nil
	}
	return c.Context.Err()
}

// ownerEnv is a socket whose peer takes no message before resume.
type ownerEnv struct {
	s, server *be.Socket
	took      sync.WaitGroup
	taker     sync.WaitGroup
	once      sync.Once
}

// post posts a buffer, which is on its way until resume.
func (e *ownerEnv) post(t *testing.T, b []byte) {
	t.Helper()
	e.took.Add(1)
	if err := e.s.Post(b, func(err error) {
		if err != nil {
			t.Errorf("post: %v", err)
		} else {
			e.s.Node().Free(b)
		}
		e.took.Done()
	}); err != nil {
		t.Fatal(err)
	}
}

func (e *ownerEnv) resume() {
	e.once.Do(func() {
		e.taker.Go(func() { sink(e.server.Node(), e.server) })
	})
}

// ownerCase runs do on a node with checks, and gives the error that told of it.
func ownerCase(t *testing.T, do func(*testing.T, *be.Socket, *ownerEnv) error) error {
	f := sim.NewFabric(sim.Config{})
	_, server := newNode(t, f, "a", be.Config{Backlog: 1})
	dev, err := f.NewDevice("b", sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	rdma, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer rdma.Close()
	n, err := be.NewNode(rdma, be.Config{Debug: bemalloc.Debug{Check: true}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := new(ownerEnv)
	if e.s, err = n.Dial(limit(t), l.Addr().String(), ""); err != nil {
		t.Fatal(err)
	}
	if e.server, err = l.Accept(limit(t)); err != nil {
		t.Fatal(err)
	}
	e.post(t, alloc(t, n, 10, 0)) // fills the backlog
	e.took.Wait()
	told := do(t, e.s, e)
	e.resume()
	e.took.Wait()
	e.s.Close()
	counted := n.Stats().OwnerErrors
	closed := n.Close()
	e.taker.Wait()
	if closed != nil && told != nil || (closed != nil) != (counted == 1) {
		t.Errorf("told %v, counted %d, and Close: %v", told, counted, closed)
	}
	if closed != nil {
		told = closed
		if err := n.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	}
	return told
}
