package core

import (
	"math/rand/v2"
	"testing"
)

// poolState is one state of a shared receive queue and the engines that use it, whose
// peers all have more to send than they may. Counts are relative, as in creditState.
type poolState struct {
	p      shares
	device int // receives that the device's queue really has
	free   int // taken and not posted again
	e      [2]poolEnd
	rnr    bool // a message found the queue empty: the end
}

type poolEnd struct {
	s       share
	granted Count
	peer    Credits
	wire    string // to us: message, or returned + n
	back    string // to the peer: countBase + count, or recall
}

const (
	message  = 1
	returned = 100 // and more
	recall   = 255
)

func newPoolState(device, claimed, least int) (s poolState) {
	s.p = shares{least: least, total: claimed, posted: claimed, epoch: 2}
	s.device = device
	for i := range s.e {
		e := &s.e[i]
		e.s.most = claimed
		if !s.p.join(&e.s) {
			panic("too few receives for the engines")
		}
		e.granted, e.peer = Count(least), NewCredits(least, 4, true)
		e.peer.limit = int32(claimed)
	}
	s.normalize()
	return s
}

func (s *poolState) normalize() {
	for i := range s.e {
		e := &s.e[i]
		base := e.peer.consumed
		e.peer.consumed = 0
		e.peer.granted -= base
		e.granted -= base

		w := []byte(e.back)
		for k := range w {
			if w[k] != recall {
				w[k] = byte(Count(w[k]) - base)
			}
		}
		e.back = string(w)
		if d := s.p.epoch - e.s.epoch; d >= 2 {
			e.s.epoch = 0
		} else {
			e.s.epoch = 2 - d
		}
	}
	s.p.epoch = 2
}

// regrant is Engine.regrant.
func (s *poolState) regrant(i int) {
	e := &s.e[i]
	if !e.s.due() {
		return
	}
	s.p.adapt(&e.s)
	if n := s.p.grant(&e.s); n > 0 {
		e.granted += Count(n)
		e.back += string([]byte{byte(e.granted + countBase)})
	}
}

func (s poolState) moves(t *testing.T) (next []poolState, can []bool) {
	can = make([]bool, len(s.e))
	if s.rnr {
		return nil, can
	}
	if s.p.out > s.p.posted || s.p.lent > s.p.total || s.p.out != s.e[0].s.out+s.e[1].s.out || s.p.lent != s.e[0].s.size+s.e[1].s.size {
		t.Fatalf("account is wrong: %+v", s)
	}
	put := func(n poolState) {
		n.normalize()
		next = append(next, n)
	}
	if s.free > 0 {
		n := s
		n.device, n.p.posted, n.free = n.device+n.free, n.p.posted+n.free, 0
		for i := range n.e {
			n.regrant(i)
		}
		put(n)
	}
	for i := range s.e {
		if s.e[i].peer.CanSend() {
			can[i] = true
			n := s
			n.e[i].peer.Consume()
			n.e[i].wire += string([]byte{message})
			put(n)
		}
		if w := s.e[i].wire; w != "" {
			n := s
			n.e[i].wire = w[1:]
			if n.device == 0 {
				n.rnr = true
				next = append(next, n)
				continue
			}
			n.device--
			n.free++
			if !n.p.arrived(&n.e[i].s) {
				t.Fatalf("a correct peer had no credit: %+v", s)
			}
			if w[0] >= returned {
				if !n.p.returned(&n.e[i].s, int(w[0]-returned)) {
					t.Fatalf("a correct peer gave back too much: %+v", s)
				}
				n.p.resize(&n.e[i].s, n.p.least)
			}
			n.regrant(i)
			put(n)
		}
		if b := s.e[i].back; b != "" {
			n := s
			e := &n.e[i]
			e.back = b[1:]
			if b[0] != recall {
				if !e.peer.Learn(Count(b[0]) - countBase) {
					t.Fatalf("a correct count was refused: %+v", s)
				}
			} else if k := e.peer.GiveBack(n.p.least); k > 0 {
				e.peer.Consume()
				e.wire += string([]byte{byte(returned + k)})
			}
			put(n)
		}
	}
	n := s // an epoch ends
	n.p.epoch++
	n.p.active = 0
	for i := range n.e {
		if n.e[i].s.active(&n.p) {
			n.p.active++
		}
		if n.p.rest(&n.e[i].s) {
			n.e[i].back += string([]byte{recall})
		}
	}
	put(n)
	return next, can
}

// TestSharedReceivesNeverRunOut explores all orders of events of two engines on one
// shared queue, whose peers send as much as they may: nothing finds the queue empty,
// and each can always send again. In the control more is granted than is posted.
func TestSharedReceivesNeverRunOut(t *testing.T) {
	for _, tt := range []struct{ device, claimed, least int }{{8, 8, 4}, {9, 9, 4}, {6, 6, 2}, {8, 8, 2}, {5, 8, 2}} {
		rnr := 0
		states, stuck := explore(newPoolState(tt.device, tt.claimed, tt.least), func(s poolState) ([]poolState, []bool) {
			if s.rnr {
				rnr++
			}
			return s.moves(t)
		})
		t.Logf("%d receives, %d claimed, %d promised to each: %d states, %d stuck, %d without a receive", tt.device, tt.claimed, tt.least, states, stuck, rnr)
		if control := tt.claimed > tt.device; control != (rnr > 0) || !control && stuck > 0 {
			t.Errorf("%d receives, %d claimed: %d messages found none, %d states without progress", tt.device, tt.claimed, rnr, stuck)
		}
	}
}

// TestSharesAreFair: of many engines that all receive, each gets an equal part; those
// that rest go back to their least, and what they had is for the others.
func TestSharesAreFair(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 11))
		const least = 4
		p := shares{least: least, total: 64 + rng.IntN(1000), epoch: 2}
		p.posted = p.total
		var list []*share
		for range 1 + rng.IntN(p.total/least) {
			s := &share{most: p.total}
			if !p.join(s) {
				t.Fatalf("seed %d: no room for engine %d of %d receives", seed, len(list), p.total)
			}
			list = append(list, s)
		}
		run := func(busy []*share) {
			for range 40 * p.total {
				s := busy[rng.IntN(len(busy))]
				for ; !s.due(); p.posted++ { // and is posted again
					p.arrived(s)
				}
				p.adapt(s)
				p.grant(s)
				if p.out > p.posted || p.lent > p.total {
					t.Fatalf("seed %d: %+v", seed, p)
				}
			}
		}
		sweep := func() {
			p.epoch++
			p.active = 0
			for _, s := range list {
				if s.active(&p) {
					p.active++
				}
				if p.rest(s) {
					p.returned(s, s.out-least)
					p.resize(s, least)
				}
			}
		}
		run(list)
		sweep()
		run(list)
		fair := max(least, p.total/len(list))
		for i, s := range list {
			if s.size < max(least, fair/2) || s.size > fair+1 {
				t.Fatalf("seed %d: engine %d of %d has %d of %d receives", seed, i, len(list), s.size, p.total)
			}
		}
		busy := list[:1]
		for range 3 {
			run(busy)
			sweep()
		}
		run(busy)
		if want := p.total - (least+1)*len(list); busy[0].size < want/2 { // one more is not worth a message
			t.Fatalf("seed %d: alone among %d, one engine has %d, of %d that are left", seed, len(list), busy[0].size, want)
		}
		for _, s := range list {
			p.leave(s, false)
		}
		if p.out != 0 || p.lent != 0 || p.active != 0 {
			t.Fatalf("seed %d: at the end %+v", seed, p)
		}
	}
}
