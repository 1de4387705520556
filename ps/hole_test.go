package ps_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// hole is a proxy that loses everything, without a sign, when told to.
type hole struct {
	lose  atomic.Bool
	addr  string
	to    string
	l     net.Listener
	wg    sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
}

func newHole(t testing.TB, to string) *hole {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hole{addr: l.Addr().String(), to: to, l: l}
	h.wg.Go(h.serve)
	t.Cleanup(func() {
		l.Close()
		h.mu.Lock()
		for _, c := range h.conns {
			c.Close()
		}
		h.mu.Unlock()
		h.wg.Wait()
	})
	return h
}

func (h *hole) serve() {
	for {
		c, err := h.l.Accept()
		if err != nil {
			return
		}
		d, err := net.Dial("tcp", h.to)
		if err != nil {
			c.Close()
			continue
		}
		h.mu.Lock()
		h.conns = append(h.conns, c, d)
		h.mu.Unlock()
		h.wg.Go(func() { h.copy(c, d) })
		h.wg.Go(func() { h.copy(d, c) })
	}
}

func (h *hole) copy(to, from net.Conn) {
	lost := false
	for b := make([]byte, 64<<10); ; {
		n, err := from.Read(b)
		lost = lost || h.lose.Load()
		if err == nil && !lost { // a stream that lost something stays lost
			_, err = to.Write(b[:n])
		}
		if err != nil {
			if !lost {
				to.Close()
			}
			from.Close()
			return
		}
	}
}
