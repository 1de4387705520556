package core

import (
	"bytes"
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/be/internal/wire"
)

// known is a buffer that side 1 published to side 0.
type known struct {
	b      []byte
	token  wire.Token
	writes int
	ended  error
}

func (w *world) publish(s *side, k *Socket, n int, free bool) *known {
	p := new(known)
	p.b, _ = w.mem.Alloc(n)
	var err error
	p.token, err = s.e.Publish(k, p.b, w.mem.expose(p.b), func(err error) {
		if err == nil {
			p.writes++
			return
		}
		if p.ended != nil {
			w.t.Errorf("ended twice, with %v and %v", p.ended, err)
		}
		p.ended = err
		if free {
			w.mem.Free(p.b)
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// put writes n bytes of c to a known buffer.
func (w *world) put(s *side, k *Socket, f *flow, t wire.Token, n int, c byte, tag uint64) {
	b, err := w.mem.Alloc(n)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range b {
		b[i] = c
	}
	i := len(f.sent)
	f.sent = append(f.sent, nil)
	f.ended = append(f.ended, errPending)
	s.e.Put(k, t, b, 1, tag, func(err error) {
		f.calls++
		f.ended[i] = err
		if err == nil {
			w.mem.Free(b)
		}
	})
}

// TestPut: a known buffer is written to again and again, with no exchange.
func TestPut(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	own, peer := w.open(0)
	p := w.publish(w.sides[1], peer, 60_000, true)
	before := w.sides[1].e.Stats().Sends - w.sides[1].e.Stats().CreditMessages
	var f flow
	for i, n := range []int{60_000, 60_000, 1, 0, 2048, 2049} {
		w.put(w.sides[0], own, &f, p.token, n, byte(i+1), 0)
		w.settle()
		if p.writes != i+1 || f.ended[i] != nil || !bytes.Equal(p.b[:n], bytes.Repeat([]byte{byte(i + 1)}, n)) {
			t.Errorf("write %d of %d bytes: %d heard of, ended with %v", i, n, p.writes, f.ended[i])
		}
	}
	st := w.sides[1].e.Stats()
	if st.Written != 6 || w.sides[0].e.Stats().Puts != 6 || st.Sends-st.CreditMessages != before {
		t.Errorf("%d writes heard of, %d made, %d messages of the receiver", st.Written, w.sides[0].e.Stats().Puts, st.Sends-st.CreditMessages-before)
	}
	w.end()
	if p.ended == nil {
		t.Error("the end of the buffer was not told")
	}
}

// TestPutRefused: what the sender can see is wrong stays with it.
func TestPutRefused(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	own, peer := w.open(0)
	other, _ := w.open(0)
	p := w.publish(w.sides[1], peer, 100, true)
	var f flow
	w.put(w.sides[0], other, &f, p.token, 10, 1, 0)
	w.put(w.sides[0], own, &f, p.token, 101, 1, 0)
	w.sides[0].e.cfg.Publish = false
	w.put(w.sides[0], own, &f, p.token, 10, 1, 0)
	if _, err := w.sides[0].e.Publish(own, p.b, 0, nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("publish with an old peer: %v", err)
	}
	w.sides[0].e.cfg.Publish = true
	w.sides[0].e.CloseSocket(w.now, own)
	w.put(w.sides[0], own, &f, p.token, 10, 1, 0)
	for i, want := range []error{ErrToken, ErrTooLarge, ErrUnsupported, ErrClosed} {
		if !errors.Is(f.ended[i], want) {
			t.Errorf("write %d ended with %v, want %v", i, f.ended[i], want)
		}
	}
	w.settle()
	if p.writes != 0 || !errors.Is(p.ended, ErrPeerClosed) || w.sides[1].failed != nil {
		t.Errorf("%d writes, ended with %v, engine %v", p.writes, p.ended, w.sides[1].failed)
	}
	w.end()
}

// TestPublishedUntilTheEnd: whatever ends a socket, with writes under way, the
// published buffer is given back when the peer writes no more. In the control it is
// freed when the socket is closed, and written to afterwards.
func TestPublishedUntilTheEnd(t *testing.T) {
	stray := 0
	for _, control := range []bool{false, true} {
		for _, seed := range seeds(t, 60) {
			cfg := testConfig()
			cfg.Linger = 1
			w := newWorld(t, seed, cfg)
			w.astray = control
			own, peer := w.open(0)
			from, to := w.sides[0], w.sides[1]
			p := w.publish(to, peer, 60_000, !control)
			var f flow
			for i := range 4 {
				w.put(from, own, &f, p.token, 60_000, byte(i), uint64(i+1))
			}
			for range w.rng.IntN(200) {
				w.step()
			}
			switch seed % 4 {
			case 0:
				from.e.CloseSocket(w.now, own)
			case 1:
				to.e.CloseSocket(w.now, peer)
			case 2:
				from.e.Cancel(own, 2)
			case 3:
				to.e.Fail(w.now, ErrClosed)
			}
			if control {
				if seed%4 == 1 {
					w.mem.Free(p.b)
					for range 2000 {
						w.step()
					}
					stray += from.qp.stray
				}
				continue
			}
			w.settle()
			from.e.Fail(w.now, ErrClosed)
			w.settle()
			for i, err := range f.ended {
				if err == errPending || f.calls != len(f.sent) {
					t.Fatalf("seed %d: write %d ended with %v, %d calls", seed, i, err, f.calls)
				}
			}
			w.end()
			if p.ended == nil {
				t.Fatalf("seed %d: the end of the buffer was not told", seed)
			}
		}
	}
	if stray == 0 {
		t.Error("the control never wrote to freed memory: the test shows nothing")
	}
}

// TestPutOfAnotherEnd: a token that the peer's end of the socket did not publish is refused
// where it is used, though all that it says is right for a socket of that number: our
// own, one of a socket that had the number before, and one of another engine.
func TestPutOfAnotherEnd(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	w.sides[0].e.TagTokens(1<<20, 1<<30)
	w.sides[1].e.TagTokens(1<<30, 1<<20)
	own, peer := w.open(0)
	before := w.publish(w.sides[1], peer, 100, true)
	w.sides[0].e.CloseSocket(w.now, own)
	w.settle()
	again, peer := w.open(0)
	if again.id != own.id {
		t.Fatalf("socket %d, want number %d again", again.id, own.id)
	}
	mine, theirs := w.publish(w.sides[0], again, 100, true), w.publish(w.sides[1], peer, 100, true)
	other := theirs.token
	other.Tag += 1 << 25
	var f flow
	for i, k := range []wire.Token{before.token, mine.token, other, theirs.token} {
		w.put(w.sides[0], again, &f, k, 10, 1, 0)
		w.settle()
		if i < 3 != errors.Is(f.ended[i], ErrToken) {
			t.Errorf("write %d ended with %v", i, f.ended[i])
		}
	}
	if theirs.writes != 1 || w.sides[0].failed != nil || w.sides[1].failed != nil {
		t.Errorf("%d writes, engines %v and %v", theirs.writes, w.sides[0].failed, w.sides[1].failed)
	}
	w.end()
}
