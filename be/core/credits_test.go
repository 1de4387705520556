package core

import (
	"math/rand/v2"
	"testing"
)

// creditState is one state of two saturated sides, with all counts of a
// direction relative to what its sender consumed: so the states are finite.
type creditState struct {
	c       [2]Credits
	deficit [2]int
	wire    [2]string // messages to side i's peer: '-' has no count, else 'a' + count
}

func (s *creditState) normalize() {
	for i := range 2 {
		base := s.c[i].consumed
		s.c[i].consumed = 0
		s.c[i].granted -= base
		s.c[1-i].posted -= base
		shift := func(b byte) byte {
			if b == '-' {
				return b
			}
			return byte(Count(b) - base)
		}
		w := []byte(s.wire[1-i])
		for k := range w {
			w[k] = shift(w[k])
		}
		s.wire[1-i] = string(w)
	}
}

// countBase puts counts that travel in the middle of a byte's range.
const countBase = 128

// moves gives every state that one event leads to, and which sides may send
// payload in this one.
func (s creditState) moves(depths [2]int) (next []creditState, canSend []bool) {
	canSend = make([]bool, 2)
	put := func(n creditState) {
		n.normalize()
		next = append(next, n)
	}
	for i := range 2 {
		send := func(n creditState, counted bool) {
			b := byte('-')
			if counted {
				b = byte(n.c[i].Tell() + countBase)
			}
			n.c[i].Consume()
			n.wire[i] += string([]byte{b})
			put(n)
		}
		canSend[i] = s.c[i].CanSend()
		if canSend[i] {
			send(s, true)  // SEND
			send(s, false) // WRITE_WITH_IMM
		}
		if s.c[i].Owed() && s.c[i].CanCredit() {
			send(s, true) // CREDIT
		}
		if s.wire[1-i] != "" {
			n := s
			b := n.wire[1-i][0]
			n.wire[1-i] = n.wire[1-i][1:]
			if b != '-' && !n.c[i].Learn(Count(b)-countBase) {
				panic("a correct peer was refused")
			}
			if n.deficit[i]++; n.deficit[i] >= depths[i]/2 {
				n.c[i].Posted(n.deficit[i])
				n.deficit[i] = 0
			}
			put(n)
		}
	}
	return next, canSend
}

// explore visits every state that can be reached and counts those from which one of
// several can never send payload again. moves gives every state that one event leads
// to, and who may send in this one.
func explore[S comparable](start S, moves func(S) (next []S, can []bool)) (states, stuck int) {
	index := map[S]int{start: 0}
	list := []S{start}
	var back [][]int32
	var can [][]bool
	for i := 0; i < len(list); i++ {
		next, c := moves(list[i])
		can = append(can, c)
		for len(back) < len(list) {
			back = append(back, nil)
		}
		for _, n := range next {
			k, ok := index[n]
			if !ok {
				k = len(list)
				index[n] = k
				list = append(list, n)
				back = append(back, nil)
			}
			back[k] = append(back[k], int32(i))
		}
	}
	bad := make([]bool, len(list))
	for side := range can[0] {
		reaches := make([]bool, len(list))
		var work []int32
		for i := range list {
			if can[i][side] {
				reaches[i] = true
				work = append(work, int32(i))
			}
		}
		for len(work) > 0 {
			i := work[len(work)-1]
			work = work[:len(work)-1]
			for _, p := range back[i] {
				if !reaches[p] {
					reaches[p] = true
					work = append(work, p)
				}
			}
		}
		for i := range list {
			bad[i] = bad[i] || !reaches[i]
		}
	}
	for _, b := range bad {
		if b {
			stuck++
		}
	}
	return len(list), stuck
}

// saturated explores two sides of these depths.
func saturated(depths [2]int, withReserve bool) (states, stuck int) {
	start := creditState{c: [2]Credits{NewCredits(depths[1], depths[0], withReserve), NewCredits(depths[0], depths[1], withReserve)}}
	return explore(start, func(s creditState) ([]creditState, []bool) { return s.moves(depths) })
}

// TestEveryInterleavingProgresses (case C14) explores all orders of events of two saturated
// sides. The control shows that the reserve is what keeps them going.
func TestEveryInterleavingProgresses(t *testing.T) {
	for _, d := range [][2]int{{2, 2}, {4, 4}, {5, 5}, {6, 6}, {4, 7}, {5, 6}} {
		states, stuck := saturated(d, true)
		t.Logf("d=%v: %d states, %d stuck", d, states, stuck)
		if stuck != 0 {
			t.Errorf("d=%v: %d of %d states cannot make progress", d, stuck, states)
		}
		states, stuck = saturated(d, false)
		t.Logf("d=%v without reserve: %d states, %d stuck", d, states, stuck)
		if stuck == 0 {
			t.Errorf("d=%v: the control without reserve found no deadlock: the exploration shows nothing", d)
		}
	}
}

// TestOldCreditsChangeNothing is part of case C14: repeated and older counts, in
// any order, never raise the balance, and wrapping counts work. The control is an
// account that adds what each message seems to grant.
func TestOldCreditsChangeNothing(t *testing.T) {
	overdrawn := 0 // times that the control believed in more receives than there are
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		d := 4 + 2*rng.IntN(20)
		c := NewCredits(d, d, true)
		origin := Count(rng.Uint32())
		c.granted += origin
		c.consumed += origin
		peer := origin + Count(d) // what the peer posted
		var said []Count
		naive := c
		for range 300 {
			switch rng.IntN(3) {
			case 0:
				if c.CanSend() {
					c.Consume()
					naive.Consume()
				}
			case 1:
				// The peer replaces some of what we consumed.
				if n := int32(d) - peer.Sub(c.consumed); n > 0 {
					peer += Count(1 + rng.IntN(int(n)))
					said = append(said, peer)
				}
			case 2:
				if len(said) == 0 {
					continue
				}
				g := said[rng.IntN(len(said))]
				naive.granted += Count(d / 2)
				if naive.Balance() > d {
					overdrawn++
				}
				before := c.Balance()
				if !c.Learn(g) {
					t.Fatalf("seed %d: a count that was said is refused", seed)
				}
				if !c.Learn(g) || c.Balance() < before || c.Balance() > d {
					t.Fatalf("seed %d: balance went from %d to %d of %d", seed, before, c.Balance(), d)
				}
			}
			if c.Balance() < 0 || peer.Sub(c.consumed) < 0 {
				t.Fatalf("seed %d: sent beyond what was posted", seed)
			}
		}
	}
	if overdrawn == 0 {
		t.Error("the control was never wrong: the test shows nothing")
	}
}

func TestTooManyCreditsAreRefused(t *testing.T) {
	c := NewCredits(16, 16, true)
	for _, g := range []Count{17, 1000, 1<<31 - 1} {
		if c.Learn(g) {
			t.Errorf("a count of %d with 16 receives was taken", g)
		}
	}
	if c.Balance() != 16 {
		t.Errorf("balance is %d", c.Balance())
	}
}
