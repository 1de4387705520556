package nic

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestGatherScatter: any payload of any pieces lands in any pieces, as if both
// were one.
func TestGatherScatter(t *testing.T) {
	s := seed(t)
	r := rand.New(rand.NewPCG(s, 3))
	pieces := func(b []byte) (segs []segment) {
		for len(b) > 0 {
			k := min(1+r.IntN(20), len(b))
			segs = append(segs, segment{b: b[:k:k]})
			b = b[k:]
		}
		return segs
	}
	for range 2000 {
		src, dst := make([]byte, 1+r.IntN(100)), make([]byte, 100)
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		p := Payload{off: r.IntN(len(src))}
		p.n = r.IntN(len(src) - p.off + 1)
		if p.many = pieces(src); len(p.many) == 1 {
			p.one, p.many = p.many[0], nil
		}
		want := src[p.off : p.off+p.n]
		if out, ok := p.AppendTo([]byte("x")); !ok || !bytes.Equal(out[1:], want) {
			t.Fatalf("gather: got %x %v, want %x", out[1:], ok, want)
		}
		d := scatter{segs: pieces(dst)}
		at := r.IntN(len(dst) - p.n + 1)
		d.seek(at)
		if ok, _ := p.copyTo(&d); !ok || !bytes.Equal(dst[at:at+p.n], want) {
			t.Fatalf("scatter at %d: got %x, want %x", at, dst, want)
		}
		if rest := slices.Concat(dst[:at], dst[at+p.n:]); !bytes.Equal(rest, make([]byte, len(rest))) {
			t.Fatalf("scatter at %d of %d bytes: wrote elsewhere: %x", at, p.n, dst)
		}
	}
}

// TestTimersInOrder: the heap gives queue pairs in the order of their times,
// against a plain list.
func TestTimersInOrder(t *testing.T) {
	s := seed(t)
	r := rand.New(rand.NewPCG(s, 4))
	var h timers
	all := make([]*QP, 50)
	for i := range all {
		all[i] = &QP{busy: busy{state: 3, timerAt: -1}}
	}
	for step := range 5000 {
		q := all[r.IntN(len(all))]
		switch r.IntN(4) {
		case 0, 1:
			q.ackDeadline = time.Duration(1 + r.IntN(1000))
			h.arm(q)
			if q.timerAt < 0 || h[q.timerAt] != (timer{q.wakeAt, q}) || q.wakeAt > q.ackDeadline {
				t.Fatalf("step %d: armed for %v at %d, %v", step, q.ackDeadline, q.timerAt, q.wakeAt)
			}
		case 2:
			h.remove(q)
		case 3:
			now := time.Duration(r.IntN(1000))
			var least time.Duration = never
			for _, x := range all {
				if x.timerAt >= 0 {
					least = min(least, x.wakeAt)
				}
			}
			if q := h.pop(now); (q != nil) != (least <= now) || q != nil && q.wakeAt != least {
				t.Fatalf("step %d: popped %v at %v, the earliest is %v", step, q, now, least)
			}
		}
	}
}
