package be_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// TestTokenOfAnotherEnd: a token of this side's own, or of another peer's socket with the same
// number, is refused where it is used, and no socket ends.
func TestTokenOfAnotherEnd(t *testing.T) {
	p := newPair(t, be.Config{})
	server, client := p.connect(t, "tensor")
	_, other := newNode(t, p.fabric, "sim2", be.Config{})
	far, err := other.Dial(limit(t), p.listener.Addr().String(), "far")
	if err != nil {
		t.Fatal(err)
	}
	farServer, err := p.listener.Accept(limit(t))
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[*be.Socket]be.Token{}
	for _, s := range []*be.Socket{server, client, far, farServer} {
		b := alloc(t, s.Node(), 100, 0)
		pub, err := s.Publish(b)
		if err != nil {
			t.Fatal(err)
		}
		tokens[s] = pub.Token()
		defer func() {
			s.Close()
			<-pub.Done()
			s.Node().Free(b)
		}()
	}
	put := func(s *be.Socket, k be.Token, n int) error {
		t.Helper()
		b, ended := alloc(t, s.Node(), n, 0), make(chan error, 1)
		if err := s.PostPut(k, b, func(err error) { ended <- err }); err != nil {
			t.Fatal(err)
		}
		err := <-ended
		if err == nil {
			s.Node().Free(b)
		}
		return err
	}
	peers := map[*be.Socket]*be.Socket{server: client, client: server, far: farServer, farServer: far}
	for s, peer := range peers {
		for of, k := range tokens {
			err := put(s, k, 10)
			if of == peer && err != nil || of != peer && !errors.Is(err, be.ErrToken) {
				t.Errorf("token %x on the socket of %x: %v", k, tokens[peer], err)
			}
		}
		if err := put(s, tokens[peer], 101); !errors.Is(err, be.ErrTooLarge) || !strings.Contains(err.Error(), "101 bytes") || !strings.Contains(err.Error(), "has 100") {
			t.Errorf("too long a write: %v", err)
		}
	}
	for s := range tokens {
		if s.Err() != nil {
			t.Errorf("a socket ended: %v", s.Err())
		}
	}
}

// TestOneTaker: the messages of a socket go one way, and the others say so, also to who
// waits already.
func TestOneTaker(t *testing.T) {
	p := newPair(t, be.Config{})
	free := func(s *be.Socket, b []byte, _ error) { s.Node().Free(b) }
	for _, c := range []struct {
		desc string
		take func(s *be.Socket) error
		want error
	}{
		{"OnMessage", func(s *be.Socket) error { return s.OnMessage(func(b []byte, _ error) { free(s, b, nil) }) }, be.ErrOnMessage},
		{"a mux", func(s *be.Socket) error { return be.NewMux(1, free).Add(s) }, be.ErrInMux},
	} {
		s, client := p.connect(t, "taken")
		waiting := make(chan error, 2)
		for range cap(waiting) {
			go func() {
				_, err := s.Recv(limit(t))
				waiting <- err
			}()
		}
		if err := c.take(s); err != nil {
			t.Fatal(err)
		}
		for range cap(waiting) {
			if err := <-waiting; err != c.want {
				t.Errorf("Recv that waits for %s: %v", c.desc, err)
			}
		}
		if err := s.OnMessage(func([]byte, error) { t.Errorf("called after %s", c.desc) }); err != c.want {
			t.Errorf("OnMessage after %s: %v", c.desc, err)
		}
		if err := be.NewMux(1, free).Add(s); err != c.want {
			t.Errorf("Mux.Add after %s: %v", c.desc, err)
		}
		if _, err := s.Recv(limit(t)); err != c.want {
			t.Errorf("Recv after %s: %v", c.desc, err)
		}
		client.Close()
	}
	s, _ := p.connect(t, "free")
	if s.OnMessage(nil) == nil {
		t.Error("OnMessage without a function")
	}
	var cfg *be.ConfigError
	for _, n := range []int{0, -1, 1<<24 + 1} {
		m := be.NewMux(n, free)
		if err := m.Add(s); !errors.As(err, &cfg) || m.Serve(limit(t)) != err {
			t.Errorf("a mux of %d: %v", n, err)
		}
	}
	m := be.NewMux(1, nil)
	if err := m.Add(s); err == nil || m.Serve(limit(t)) != err {
		t.Errorf("a mux without a handler: %v", err)
	}
	if err := be.NewMux(1, free).Add(s); err != nil { // nothing of that took it
		t.Error(err)
	}
}

// TestNilArguments: they give errors.
func TestNilArguments(t *testing.T) {
	p := newPair(t, be.Config{})
	s, client := p.connect(t, "nil")
	b := alloc(t, p.nodes[1], 10, 0)
	if err := client.PostRead(nil, 0, b, nil); !errors.Is(err, be.ErrToken) {
		t.Errorf("PostRead of a nil token: %v", err)
	}
	if err := client.Read(limit(t), nil, 0, b); !errors.Is(err, be.ErrToken) {
		t.Errorf("Read of a nil token: %v", err)
	}
	var none context.Context
	for name, err := range map[string]error{
		"Send":   client.Send(none, alloc(t, p.nodes[1], 10, 0)),
		"Recv":   second(s.Recv(none)),
		"Dial":   second(p.nodes[1].Dial(none, p.listener.Addr().String(), "nil")),
		"Accept": second(p.listener.Accept(none)),
		"Serve":  be.NewMux(1, func(*be.Socket, []byte, error) {}).Serve(none),
	} {
		if err == nil || !strings.Contains(err.Error(), "nil context") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestOtherFabric: a peer that the device knows to be out of reach, as a simulated one does
// those of another process, is named at once.
func TestOtherFabric(t *testing.T) {
	p := newPair(t, be.Config{})
	dev, err := sim.Open(sim.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	n := nodeOn(t, dev, be.Config{})
	_, err = n.Dial(limit(t), p.listener.Addr().String(), "far")
	var step *be.StepError
	if !errors.Is(err, syscall.EHOSTUNREACH) || !errors.As(err, &step) || step.Step != be.StepRTR || !strings.Contains(err.Error(), "their own process") {
		t.Errorf("dialed a node on another fabric: %v", err)
	}
}
