package be_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/byteexpress/byteexpress/be"
)

// TestListenerThatNobodyAccepts: a listener keeps 1,024 sockets for Accept and refuses
// further ones as busy, which is over when one was accepted; all that were taken are good.
func TestListenerThatNobodyAccepts(t *testing.T) {
	p := newPair(t, be.Config{})
	addr := p.listener.Addr().String()
	const kept = 1024
	for i := range kept {
		if _, err := p.nodes[1].Dial(limit(t), addr, strconv.Itoa(i)); err != nil {
			t.Fatalf("dial %d: %v", i, err)
		}
	}
	if _, err := p.nodes[1].Dial(limit(t), addr, "more"); !errors.Is(err, be.ErrBusy) || !errors.Is(err, be.ErrRefused) {
		t.Errorf("dial beyond %d: %v", kept, err)
	}
	for i := range kept {
		s, err := p.listener.Accept(limit(t))
		if err != nil || s.Service() != strconv.Itoa(i) {
			t.Fatalf("accept %d: %v", i, err)
		}
		if i > 0 {
			continue
		}
		if _, err := p.nodes[1].Dial(limit(t), addr, "again"); err != nil {
			t.Errorf("dial when one was accepted: %v", err)
		}
	}
	p.listener.Close()
	if _, err := p.nodes[1].Dial(limit(t), addr, "gone"); !errors.Is(err, be.ErrRefused) || errors.Is(err, be.ErrBusy) {
		t.Errorf("dial of a closed listener: %v", err)
	}
}
