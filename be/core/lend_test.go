package core

import "testing"

// lendState is one state of two saturated sides, of which side 0 has its receives from
// a shared queue that a rival uses too, at will. Counts are relative, as in
// creditState.
type lendState struct {
	c       [2]Credits
	deficit int // of side 1, whose receives are its own
	p       shares
	s       share
	rival   int       // receives that the rival holds
	wire    [2]string // messages of each side: what, and a count
	asked   bool      // side 0 has a recall to send
	owes    bool      // side 1 has to give back
}

const (
	plain = iota // WRITE_WITH_IMM: no count
	counted
	recalled
	gave // and more: how many
)

func (s *lendState) normalize() {
	for i := range 2 {
		base := s.c[i].consumed
		s.c[i].consumed = 0
		s.c[i].granted -= base
		s.c[1-i].posted -= base
		w := []byte(s.wire[1-i])
		for k := 0; k < len(w); k += 2 {
			if w[k] != plain {
				w[k+1] = byte(Count(w[k+1]) - base)
			}
		}
		s.wire[1-i] = string(w)
	}
	if d := s.p.epoch - s.s.epoch; d >= 2 {
		s.s.epoch = 0
	} else {
		s.s.epoch = 2 - d
	}
	s.p.epoch = 2
}

// regrant is Engine.regrant of side 0.
func (s *lendState) regrant() {
	if s.s.due() {
		s.p.adapt(&s.s)
		if n := s.p.grant(&s.s); n > 0 {
			s.c[0].Posted(n)
		}
	}
}

func (s lendState) moves(t *testing.T, d int) (next []lendState, can []bool) {
	can = make([]bool, 2)
	put := func(n lendState) {
		n.normalize()
		next = append(next, n)
	}
	for i := range 2 {
		send := func(n lendState, what byte) {
			b := byte(0)
			if what != plain {
				b = byte(n.c[i].Tell() + countBase)
			}
			n.c[i].Consume()
			n.wire[i] += string([]byte{what, b})
			put(n)
		}
		if can[i] = s.c[i].CanSend(); can[i] {
			send(s, counted)
			send(s, plain)
			if i == 0 && s.asked {
				n := s
				n.asked = false
				send(n, recalled)
			}
			if i == 1 && s.owes {
				n := s
				n.owes = false
				if k := n.c[1].GiveBack(d); k > 0 {
					send(n, byte(gave+k))
				} else {
					put(n)
				}
			}
		}
		if s.c[i].Owed() && s.c[i].CanCredit() {
			send(s, counted)
		}
		if s.wire[1-i] == "" {
			continue
		}
		n := s
		what, b := n.wire[1-i][0], n.wire[1-i][1]
		n.wire[1-i] = n.wire[1-i][2:]
		if what != plain && !n.c[i].Learn(Count(b)-countBase) {
			t.Fatalf("a correct peer was refused: %+v", s)
		}
		if i == 1 {
			n.owes = n.owes || what == recalled
			if n.deficit++; n.deficit >= d/2 {
				n.c[1].Posted(n.deficit)
				n.deficit = 0
			}
			put(n)
			continue
		}
		if !n.p.arrived(&n.s) || what >= gave && !n.p.returned(&n.s, int(what-gave)) {
			t.Fatalf("a correct peer had no credit: %+v", s)
		}
		n.p.posted++ // at once
		if what >= gave {
			n.p.resize(&n.s, n.p.least)
		}
		n.regrant()
		put(n)
	}
	if n := s; n.p.lent < n.p.total {
		n.rival, n.p.lent = n.rival+1, n.p.lent+1
		put(n)
	}
	if n := s; n.rival > 0 {
		n.rival, n.p.lent = n.rival-1, n.p.lent-1
		put(n)
	}
	if n := s; true { // an epoch ends
		n.p.epoch++
		n.p.active = 0
		if n.s.active(&n.p) {
			n.p.active = 1
		}
		n.asked = n.p.rest(&n.s) || n.asked
		put(n)
	}
	return next, can
}

// TestLendingProgresses explores all orders of events of two saturated sides while
// what one of them grants grows and shrinks: both can always send again. In the
// control nothing is reserved for CREDIT.
func TestLendingProgresses(t *testing.T) {
	for _, tt := range []struct {
		d, more int
		reserve bool
	}{{2, 1, true}, {2, 2, true}, {4, 1, true}, {4, 2, true}, {2, 2, false}} {
		start := lendState{c: [2]Credits{NewCredits(tt.d, tt.d, tt.reserve), NewCredits(tt.d, tt.d, tt.reserve)}}
		total := tt.d + tt.more
		start.p, start.s = shares{least: tt.d, total: total, posted: total, epoch: 2}, share{most: total}
		start.p.join(&start.s)
		start.c[1].limit = int32(total)
		start.normalize()
		states, stuck := explore(start, func(s lendState) ([]lendState, []bool) { return s.moves(t, tt.d) })
		t.Logf("d=%d and %d lent, reserve %v: %d states, %d stuck", tt.d, tt.more, tt.reserve, states, stuck)
		if tt.reserve != (stuck == 0) {
			t.Errorf("d=%d and %d lent, reserve %v: %d of %d states cannot make progress", tt.d, tt.more, tt.reserve, stuck, states)
		}
	}
}
