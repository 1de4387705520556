package testprocess

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Hole is a proxy that loses everything, without a sign, when told to.
type Hole struct {
	Lose atomic.Bool
	Addr string // where it listens

	to    string
	l     net.Listener
	conns []net.Conn // serve's
	wg    sync.WaitGroup
}

// NewHole starts a proxy to an address. It ends when the test does.
func NewHole(t testing.TB, to string) *Hole {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &Hole{Addr: l.Addr().String(), to: to, l: l}
	var serving sync.WaitGroup
	serving.Go(h.serve)
	t.Cleanup(func() {
		l.Close()
		serving.Wait() // no connections come any more
		for _, c := range h.conns {
			c.Close()
		}
		h.wg.Wait()
	})
	return h
}

// little bounds what is on its way, in bytes.
const little = 128 << 10

func (h *Hole) serve() {
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
		for _, conn := range []net.Conn{c, d} {
			_ = conn.(*net.TCPConn).SetReadBuffer(little)
			_ = conn.(*net.TCPConn).SetWriteBuffer(little)
		}
		h.conns = append(h.conns, c, d)
		h.wg.Go(func() { h.copy(c, d) })
		h.wg.Go(func() { h.copy(d, c) })
	}
}

func (h *Hole) copy(to, from net.Conn) {
	lost := false
	for b := make([]byte, 2*little); ; {
		n, err := from.Read(b)
		lost = lost || h.Lose.Load()
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
