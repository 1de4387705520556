package core

import (
	"errors"
	"testing"
)

// TestSendAfterCloseNamesTheCloser sends on both ends of a socket that is wholly
// gone: each is told who closed it.
func TestSendAfterCloseNamesTheCloser(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	own, peer := w.open(0)
	w.sides[0].e.CloseSocket(w.now, own)
	w.settle()
	for i, c := range []struct {
		s    *Socket
		want error
	}{{own, ErrClosed}, {peer, ErrPeerClosed}} {
		if c.s.state != sockGone {
			t.Fatalf("side %d: the socket is not gone", i)
		}
		b, err := w.mem.Alloc(8)
		if err != nil {
			t.Fatal(err)
		}
		var got error
		w.sides[i].e.Send(c.s, b, 0, 0, func(err error) { got = err })
		if !errors.Is(got, c.want) {
			t.Errorf("side %d: %v, want %v", i, got, c.want)
		}
	}
	w.end()
}
