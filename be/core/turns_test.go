package core

import (
	"slices"
	"testing"
)

// TestTurns: in a round each peer that has messages waiting has one turn, also one that
// comes while the round is under way, unless it had its turn before.
func TestTurns(t *testing.T) {
	r := ring{round: 1}
	var peers [200]*Engine // several in a slot
	for i := range peers {
		peers[i], _, _, _ = newNull(t)
		peers[i].turn.slot = ringSlot(7, uint64(i))
	}
	wait := func(e *Engine) {
		if e.waiting.head == nil {
			r.add(e)
		}
		e.waiting.push(new(incoming))
	}
	for i, e := range peers[:150] {
		for range 1 + i%3 {
			wait(e)
		}
	}
	turns := map[*Engine]int{}
	took := func(n int) {
		for range n {
			e := r.first()
			turns[e]++
			r.pop(e)
		}
	}
	took(100)
	for e, n := range turns {
		if n != 1 {
			t.Errorf("a peer had %d turns in a round", n)
		}
		wait(e)
	}
	took(50)
	if len(turns) != 150 {
		t.Errorf("%d peers of 150 had a turn in a round", len(turns))
	}
	for _, e := range peers[150:] {
		wait(e)
	}
	clear(turns)
	took(200)
	for e, n := range turns {
		if n > 2 { // one of them in the round that began
			t.Errorf("a peer had %d turns", n)
		}
		if slices.Contains(peers[150:], e) && n == 0 {
			t.Error("a peer that came had none")
		}
	}
	for r.first() != nil {
		r.pop(r.first())
	}
	if r.full != 0 || r.n != 0 {
		t.Errorf("at the end %d peers wait, in slots %x", r.n, r.full)
	}
}

// TestTurnsAreDrawn: at two nodes the same peers have their turns in different orders,
// and the slots are used evenly.
func TestTurnsAreDrawn(t *testing.T) {
	const peers = 64 * 16
	for seed := range uint64(20) {
		same, used := 0, [ringSlots]int{}
		for n := range uint64(peers) {
			slot := ringSlot(seed, n)
			used[slot]++
			if near := int(slot) - int(ringSlot(seed+1, n)); near > -3 && near < 3 {
				same++
			}
		}
		if same > peers/8 { // by chance 5 of 64
			t.Errorf("nodes %d and %d: %d of %d peers are at about the same place", seed, seed+1, same, peers)
		}
		if slices.Max(used[:]) > 40 || slices.Min(used[:]) < 3 {
			t.Errorf("node %d: slots have %d to %d peers, want about 16", seed, slices.Min(used[:]), slices.Max(used[:]))
		}
	}
}
