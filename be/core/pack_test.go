package core

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// begun lists the messages that a request begins, as "socket:sequence".
func (w *world) begun(wr *qp.SendWR) (all []string) {
	var h wire.Header
	b := w.mem.at(wr.SGEs[0].Addr, wr.SGEs[0].Length)
	if wr.Opcode != qp.Send {
		return nil
	}
	if err := h.Parse(b, len(b)-wire.HeaderLen); h.Type == wire.Data {
		return []string{fmt.Sprint(h.Socket, ":", h.Sequence)}
	} else if h.Type == wire.RTS {
		return []string{fmt.Sprint(h.Socket, ":", h.Sequence, " asked")}
	} else if h.Type != wire.Pack {
		return nil
	} else if err != nil {
		w.t.Fatal(err)
	}
	for i := range int(h.Sequence) {
		p := wire.PartAt(b[wire.HeaderLen:], i)
		all = append(all, fmt.Sprint(p.Socket, ":", p.Sequence))
	}
	return all
}

// TestPackingKeepsTheOrder: with sockets of any weights that have messages of any sizes,
// what is begun in one flush, and in which order, is the same with packing and without,
// as far as that goes without: nothing waits for others, and nobody overtakes.
func TestPackingKeepsTheOrder(t *testing.T) {
	more := 0
	for _, seed := range seeds(t, 100) {
		var order [2][]string
		for i := range order {
			cfg := testConfig()
			cfg.Backlog, cfg.PeerBacklog = 1<<10, 1<<10
			if i == 0 {
				cfg.PackLimit = 0
			}
			w := newWorld(t, seed, cfg)
			rng := rand.New(rand.NewPCG(seed, 15))
			var socks []*Socket
			var flows []flow
			for range 1 + rng.IntN(12) {
				s, _ := w.open(0)
				w.sides[0].e.SetWeight(s, 1+rng.IntN(4))
				socks = append(socks, s)
			}
			flows = make([]flow, len(socks))
			for range rng.IntN(150) {
				k := rng.IntN(len(socks))
				w.send(w.sides[0], socks[k], &flows[k], []int{0, 1, 64, 200, 201, 1024, 3000}[rng.IntN(7)], 0)
			}
			w.sides[0].e.Flush(w.now)
			for j := range w.sides[0].qp.sq {
				order[i] = append(order[i], w.begun(&w.sides[0].qp.sq[j].SendWR)...)
			}
			w.settle()
			w.end()
		}
		n := len(order[0])
		if n > len(order[1]) || !slices.Equal(order[0], order[1][:n]) {
			t.Fatalf("seed %d: without packing %v, with it %v", seed, order[0], order[1])
		}
		more += len(order[1]) - n
	}
	if more == 0 {
		t.Error("nothing was packed: the test shows nothing")
	}
}

// TestPackUsesOneOfAll: several messages use one credit, one slot, one request and one
// completion. A message alone is DATA, byte for byte as to a peer that does not know
// PACK. Segments and the peer's receive bound what goes together.
func TestPackUsesOneOfAll(t *testing.T) {
	for _, tt := range []struct {
		desc              string
		limit, width      int
		sizes             []int
		requests, credits int
	}{
		{"five", 200, 6, []int{64, 64, 64, 64, 64}, 1, 1},
		{"one too many for the segments", 200, 6, []int{64, 64, 64, 64, 64, 64}, 2, 2},
		{"empty ones", 200, 3, []int{0, 0, 0, 0, 0, 64, 0}, 1, 1},
		{"two segments", 200, 2, []int{64, 64, 64}, 3, 3},
		{"as many as there may be", 200, 30, slices.Repeat([]int{10}, 17), 2, 2},
		{"one too long", 200, 6, []int{64, 201, 64, 64}, 3, 3},
		{"as much as a receive takes", 1024, 6, []int{500, 500, 1}, 1 + 1, 1 + 1},
		{"not agreed on", 0, 6, []int{64, 64, 64}, 3, 3},
		{"one", 200, 6, []int{64}, 1, 1},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			cfg := testConfig()
			cfg.Backlog, cfg.PeerBacklog = 1<<10, 1<<10
			cfg.PackLimit, cfg.Pack = tt.limit, tt.limit > 0
			w := newWorld(t, 1, cfg)
			a, b := w.sides[0], w.sides[1]
			a.e.chain.scratch.width = tt.width
			a.e.chain.scratch.sends = *newBatch(cfg.SendDepth, tt.width)
			a.qp.caps.SendSGE = tt.width
			own, _ := w.open(0)
			consumed, free := a.e.credits.consumed, a.e.chain.Free()
			var f flow
			for _, n := range tt.sizes {
				w.send(a, own, &f, n, 0)
			}
			a.e.Flush(w.now)
			if n := int(a.e.credits.consumed - consumed); n != tt.credits {
				t.Errorf("%d credits used, want %d", n, tt.credits)
			}
			if n := free - a.e.chain.Free(); n != tt.requests || len(a.qp.sq) != n {
				t.Errorf("%d slots used for %d requests, want %d", n, len(a.qp.sq), tt.requests)
			}
			for i := range a.qp.sq {
				wr := &a.qp.sq[i].SendWR
				h := w.mem.at(wr.SGEs[0].Addr, wire.HeaderLen)
				if n := len(w.begun(wr)); n == 1 && (h[0] != byte(wire.Data) || wr.SGEs[0].Length != wire.HeaderLen) {
					t.Errorf("one message alone has the header % x of %d bytes", h, wr.SGEs[0].Length)
				}
			}
			w.settle()
			for i, got := range b.got[own.id] {
				if len(got) != tt.sizes[i] {
					t.Errorf("message %d has %d bytes, want %d", i, len(got), tt.sizes[i])
				}
			}
			st, to := a.e.Stats(), b.e.Stats()
			if len(b.got[own.id]) != len(tt.sizes) || st.Sent != uint64(len(tt.sizes)) || st.Packed != uint64(len(tt.sizes)-tt.requests) {
				t.Errorf("%d messages arrived, stats %+v", len(b.got[own.id]), st)
			}
			if (to.Copies == 0) != (st.Packed == 0) || to.Copies > st.Sent {
				t.Errorf("%d copies of %d messages, of which %d were added", to.Copies, st.Sent, st.Packed)
			}
			w.end()
		})
	}
}

// TestCancelInAPack: a message that is in a PACK is delivered, one that is queued behind it
// is given up, and those around it arrive.
func TestCancelInAPack(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	a, b := w.sides[0], w.sides[1]
	own, _ := w.open(0)
	other, _ := w.open(0)
	var f, g flow
	for tag := range uint64(5) {
		w.send(a, own, &f, 64, tag+1)
	}
	a.e.Flush(w.now)
	for tag := range uint64(3) {
		w.send(a, own, &f, 64, tag+6)
		w.send(a, other, &g, 64, 0)
	}
	a.e.Cancel(own, 2) // posted
	a.e.Cancel(own, 7) // queued
	w.settle()
	for i, err := range f.ended {
		if gone := i == 6; (err != nil) != gone || gone && !errors.Is(err, ErrCanceled) {
			t.Errorf("message %d ended with %v", i, err)
		}
	}
	if n, m := len(b.got[own.id]), len(b.got[other.id]); n != 7 || m != 3 || a.e.Stats().Packed != 4+4 {
		t.Errorf("%d and %d messages arrived; stats %+v", n, m, a.e.Stats())
	}
	w.end()
}

// TestPackWithoutMemory: messages for which there is no memory wait in the receive that
// they came in, those behind them on their sockets too, and arrive once and in order when
// there is some, though their engine failed before; if their socket ends, all memory comes
// back.
func TestPackWithoutMemory(t *testing.T) {
	for _, end := range []string{"memory", "close", "fail"} {
		t.Run(end, func(t *testing.T) {
			w := newWorld(t, 1, testConfig())
			a, b := w.sides[0], w.sides[1]
			var socks, peers [3]*Socket
			var flows [3]flow
			for i := range socks {
				socks[i], peers[i] = w.open(0)
			}
			w.mem.fail = true
			const each = 4
			for range each {
				for i := range socks {
					w.send(a, socks[i], &flows[i], 100, 0)
				}
			}
			for range 2000 {
				w.step()
				w.mem.fail = true
			}
			if b.e.Held() == 0 || b.e.packed.n == 0 || b.e.Stats().Waiting == 0 {
				t.Fatal("no message waits: the test shows nothing")
			}
			switch end {
			case "close":
				b.e.CloseSocket(w.now, peers[1])
				a.e.CloseSocket(w.now, socks[2])
			case "fail":
				b.e.Fail(w.now, errors.New("pulled"))
			}
			w.mem.fail = false
			w.settle()
			for i, s := range socks {
				got := b.got[s.id]
				if end != "close" && len(got) != each {
					t.Errorf("%d messages arrived on socket %d, want %d", len(got), i, each)
				}
				for k := range got {
					if !slices.Equal(got[k], flows[i].sent[k]) {
						t.Errorf("message %d of socket %d arrived changed", k, i)
					}
				}
			}
			if b.e.packed.n != 0 {
				t.Errorf("%d messages wait", b.e.packed.n)
			}
			if end != "fail" && (a.failed != nil || b.failed != nil) {
				t.Errorf("failures %v and %v", a.failed, b.failed)
			}
			w.end()
		})
	}
}

// TestPackWithLittleMemory: a message that lacks memory holds up none for which there is
// some, and a buffer of a receive will do for any.
func TestPackWithLittleMemory(t *testing.T) {
	for _, tt := range []struct {
		desc string
		full func(n int) bool
		want [2]int // messages that arrive: those of 200 and of 20 bytes
	}{
		{"of short buffers", func(n int) bool { return n >= 200 }, [2]int{0, 2}},
		{"of receives", func(n int) bool { return n != testConfig().EagerLimit }, [2]int{2, 2}},
		{"none", func(int) bool { return true }, [2]int{}},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			w := newWorld(t, 1, testConfig())
			a, b := w.sides[0], w.sides[1]
			long, _ := w.open(0)
			short, _ := w.open(0)
			var flows [2]flow
			for range 2 {
				w.send(a, long, &flows[0], 200, 0)
				w.send(a, short, &flows[1], 20, 0)
			}
			run := func() {
				for range 2000 {
					w.step()
				}
			}
			w.mem.full = func(int) bool { return true }
			if run(); b.e.packed.n != 4 {
				t.Fatalf("%d messages wait: the test shows nothing", b.e.packed.n)
			}
			w.mem.full = tt.full
			if run(); len(b.got[long.id]) != tt.want[0] || len(b.got[short.id]) != tt.want[1] {
				t.Errorf("%d and %d messages arrived, want %v", len(b.got[long.id]), len(b.got[short.id]), tt.want)
			}
			w.mem.full = nil
			w.settle()
			for i, s := range []*Socket{long, short} {
				for k, got := range b.got[s.id] {
					if !slices.Equal(got, flows[i].sent[k]) {
						t.Errorf("message %d of socket %d arrived changed", k, i)
					}
				}
				if len(b.got[s.id]) != 2 {
					t.Errorf("%d messages arrived on socket %d in the end", len(b.got[s.id]), i)
				}
			}
			w.end()
		})
	}
}

// TestCloseBehindPackedMessages: what the peer was told is sent is delivered, though it waits
// for memory when the peer's CLOSE comes; unless the application closes too, or has.
func TestCloseBehindPackedMessages(t *testing.T) {
	for _, own := range []string{"", "before", "after"} {
		t.Run("closed here "+own, func(t *testing.T) {
			w := newWorld(t, 1, testConfig())
			a, b := w.sides[0], w.sides[1]
			s, peer := w.open(0)
			var f flow
			for range 4 {
				w.send(a, s, &f, 100, 0)
			}
			w.mem.fail = true
			run := func() {
				for range 2000 {
					w.step()
					w.mem.fail = true
				}
			}
			if run(); b.e.packed.n != 4 || f.calls != 4 {
				t.Fatalf("%d messages wait, %d were sent: the test shows nothing", b.e.packed.n, f.calls)
			}
			if own == "before" {
				b.e.CloseSocket(w.now, peer)
			}
			a.e.CloseSocket(w.now, s)
			run()
			if own == "after" {
				if b.ended[peer] != nil {
					t.Errorf("the socket ended with %v, with messages to come", b.ended[peer])
				}
				b.e.CloseSocket(w.now, peer)
				run()
			}
			if n := b.e.packed.n; (n == 4) != (own == "") {
				t.Errorf("%d messages wait", n)
			}
			w.mem.fail = false
			w.settle()
			want, end := 4, ErrPeerClosed
			if own != "" {
				want, end = 0, ErrClosed
			}
			if n := len(b.got[s.id]); n != want {
				t.Errorf("%d messages arrived, want %d", n, want)
			}
			if err := b.ended[peer]; !errors.Is(err, end) || a.failed != nil || b.failed != nil || a.e.Sockets()+b.e.Sockets() != 0 {
				t.Errorf("the socket ended with %v, the engines with %v and %v; %d and %d sockets are left", err, a.failed, b.failed, a.e.Sockets(), b.e.Sockets())
			}
			w.end()
		})
	}
}

// TestPackedGather: messages in pieces go together with others, as far as there are
// segments.
func TestPackedGather(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	a, b := w.sides[0], w.sides[1]
	own, _ := w.open(0)
	buf, _ := w.mem.Alloc(64)
	for i := range buf {
		buf[i] = byte(i)
	}
	ended := 0
	for i := range 6 {
		n := 1 + i%3
		var pieces []qp.SGE
		for k := range n {
			pieces = append(pieces, qp.SGE{Addr: mr.Addr(buf) + uint64(10*k), Length: uint32(3 + i), LKey: 1})
		}
		a.e.Gather(own, pieces, 0, func(err error) {
			if err != nil {
				t.Error(err)
			}
			ended++
		})
	}
	w.settle()
	w.mem.Free(buf)
	for i, got := range b.got[own.id] {
		var want []byte
		for k := range 1 + i%3 {
			for j := range 3 + i {
				want = append(want, byte(10*k+j))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("message %d is % x, want % x", i, got, want)
		}
	}
	if ended != 6 || len(b.got[own.id]) != 6 || a.e.Stats().Packed == 0 {
		t.Errorf("%d ended, %d arrived, stats %+v", ended, len(b.got[own.id]), a.e.Stats())
	}
	w.end()
}

// TestSocketsShareAPack: the messages of many sockets join while the last
// credit's request is prepared, and large ones keep their turn to be asked for.
func TestSocketsShareAPack(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	a := w.sides[0]
	var socks [5]*Socket
	var flows [5]flow
	for i := range socks {
		socks[i], _ = w.open(0)
	}
	var large [2]*Socket
	for i := range large {
		large[i], _ = w.open(0)
	}
	var fl flow
	consumed := a.e.credits.consumed
	a.e.credits.consumed = a.e.credits.granted - reserve - 1 // one is left
	for i := range socks {
		w.send(a, socks[i], &flows[i], 20, 0)
	}
	a.e.Flush(w.now)
	if len(a.qp.sq) != 1 || len(w.begun(&a.qp.sq[0].SendWR)) != len(socks) {
		t.Fatalf("%d requests, the first with %v", len(a.qp.sq), w.begun(&a.qp.sq[0].SendWR))
	}
	for _, k := range large {
		w.send(a, k, &fl, 5000, 0)
	}
	for turn := range 4 { // one credit each time: every other one is for a large one
		for i := range socks {
			w.send(a, socks[i], &flows[i], 20, 0)
		}
		a.e.credits.consumed--
		a.e.Flush(w.now)
		if len(a.qp.sq) != 2+turn {
			t.Fatalf("turn %d: %d requests", turn, len(a.qp.sq))
		}
	}
	if n := a.e.sched.asks.n; n != 0 {
		t.Errorf("%d sockets are to ask", n)
	}
	a.e.credits.consumed = consumed + 5
	w.settle()
	w.end()
}

// TestPackedBeforeReceives: memory that comes back is for messages that have arrived, before
// it is for more receives: whoever sent those may wait for the answers, and send no more.
func TestPackedBeforeReceives(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	a, b := w.sides[0], w.sides[1]
	var socks [5]*Socket
	for i := range socks {
		socks[i], _ = w.open(0)
	}
	var f flow
	for i := range 10 {
		for range 2 {
			w.send(a, socks[i/2], &f, 100, 0)
		}
		w.starve()
	}
	if n := b.e.packed.n; n != 20 || b.e.recv.missing() < 8 {
		t.Fatalf("%d messages wait, %d receives are missing: the test shows nothing", n, b.e.recv.missing())
	}
	most := len(w.mem.live) + 4
	w.mem.full = func(int) bool { return len(w.mem.live) >= most }
	w.mem.fail = false
	for range 1000 {
		w.step()
	}
	if n := b.e.packed.n; n != 0 {
		t.Errorf("%d messages wait still, %d receives are posted", n, b.e.receiving())
	}
	w.mem.full = nil
	w.settle()
	w.end()
}
