package core

import (
	"bytes"
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/mr"
)

// fetch reads b's memory from the other side into a buffer of its own, which f gets.
func (w *world) fetch(s *side, k *Socket, f *flow, from []byte, tag uint64) {
	b, err := w.mem.Alloc(len(from))
	if err != nil {
		w.t.Fatal(err)
	}
	i := len(f.sent)
	f.sent, f.ended = append(f.sent, nil), append(f.ended, errPending)
	s.e.Fetch(k, mr.Addr(from), readKey, b, 1, tag, func(err error) {
		f.calls++
		f.ended[i] = err
		if err == nil {
			f.sent[i] = bytes.Clone(b)
			w.mem.Free(b)
		}
	})
}

// exposed is memory to be fetched.
func (w *world) exposed(n int) []byte {
	b, err := w.mem.Alloc(n)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range b {
		b[i] = byte(i * 11)
	}
	return b
}

// TestFetch: exposed memory is read within the window, with nothing sent either way, and
// takes turns with what the peer offers on the same socket.
func TestFetch(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	own, peer := w.open(0)
	reader, owner := w.sides[0], w.sides[1]
	from := w.exposed(60_000)
	before := owner.e.Stats()
	var f flow
	for _, n := range []int{60_000, 1, 2048, 2049, 60_000} {
		w.fetch(reader, own, &f, from[:n], 0)
	}
	peak := 0
	for w.step() {
		peak = max(peak, reader.e.window.Posted())
	}
	for i, b := range f.sent {
		if f.ended[i] != nil || !bytes.Equal(b, from[:len(b)]) || len(b) == 0 {
			t.Errorf("fetch %d: %d bytes, ended with %v", i, len(b), f.ended[i])
		}
	}
	after := owner.e.Stats()
	if peak > 8192 || reader.e.Stats().Fetches != 5 || after.Sends != before.Sends || after.Received != before.Received {
		t.Errorf("%d bytes posted at most, %d fetches, the owner sent %d", peak, reader.e.Stats().Fetches, after.Sends-before.Sends)
	}

	if err := owner.e.SetGet(peer, true); err != nil {
		t.Fatal(err)
	}
	var sent flow
	w.send(owner, peer, &sent, 60_000, 0)
	w.fetch(reader, own, &f, from, 0)
	w.settle()
	if f.ended[5] != nil || sent.ended[0] != nil || !bytes.Equal(f.sent[5], from) || !bytes.Equal(reader.got[own.id][0], sent.sent[0]) {
		t.Errorf("together: fetch %v, message %v", f.ended[5], sent.ended[0])
	}
	w.mem.Free(from)
	w.end()
}

// TestFetchRefused: what cannot be done ends at once, and the buffer is the engine's.
func TestFetchRefused(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	own, _ := w.open(0)
	from := w.exposed(100)
	var f flow
	w.sides[0].e.cfg.Get = false
	w.fetch(w.sides[0], own, &f, from, 0)
	w.sides[0].e.cfg.Get = true
	w.sides[0].e.CloseSocket(w.now, own)
	w.fetch(w.sides[0], own, &f, from, 0)
	for i, want := range []error{ErrUnsupported, ErrClosed} {
		if !errors.Is(f.ended[i], want) {
			t.Errorf("fetch %d ended with %v, want %v", i, f.ended[i], want)
		}
	}
	w.mem.Free(from)
	w.end()
}

// TestFetchEnds: whatever ends a fetch, it is told once, and its buffer is given back
// when the device writes there no more.
func TestFetchEnds(t *testing.T) {
	for _, seed := range seeds(t, 60) {
		cfg := testConfig()
		cfg.Linger = 1
		w := newWorld(t, seed, cfg)
		own, peer := w.open(0)
		reader, owner := w.sides[0], w.sides[1]
		from := w.exposed(60_000)
		owner.e.SetGet(peer, true)
		var f, sent flow
		for i := range 4 {
			w.send(owner, peer, &sent, 30_000, 0)
			w.fetch(reader, own, &f, from, uint64(i+1))
		}
		for range w.rng.IntN(200) {
			w.step()
		}
		switch seed % 5 {
		case 0:
			reader.e.CloseSocket(w.now, own)
		case 1:
			owner.e.CloseSocket(w.now, peer)
		case 2:
			reader.e.Cancel(own, 2)
		case 3:
			owner.e.Fail(w.now, ErrClosed)
		case 4:
			reader.e.Fail(w.now, ErrClosed)
		}
		w.settle()
		if seed%5 == 2 && (f.ended[0] != nil || f.ended[3] != nil || reader.failed != nil) {
			t.Errorf("seed %d: beside one that was given up: %v", seed, f.ended)
		}
		reader.e.Fail(w.now, ErrClosed)
		w.settle()
		for i, err := range f.ended {
			if err == errPending || f.calls != len(f.sent) {
				t.Fatalf("seed %d: fetch %d ended with %v, %d calls", seed, i, err, f.calls)
			}
		}
		if reader.qp.stray != 0 {
			t.Fatalf("seed %d: %d READs into memory that was given back", seed, reader.qp.stray)
		}
		w.mem.Free(from)
		w.end()
	}
}
