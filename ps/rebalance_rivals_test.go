package ps

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// rival makes a change beside others, until it is done, or refused, or some time is over.
// end is told whether it is done, and why it is refused.
func (w *moveWorld) rival(from, to *Map, until time.Duration, end func(done bool, err error)) {
	c, err := newCoordinator(from, to, w.rng.Uint32(), testLease)
	if err != nil {
		w.t.Fatal(err)
	}
	var round func()
	round = func() {
		if w.now > until {
			end(false, c.why)
			return
		}
		list := c.round()
		over := false
		judge := func() {
			if over {
				return
			}
			over = true
			switch pause, err := c.judge(); {
			case err != nil:
				end(false, err)
			case c.phase == phaseDone:
				end(true, nil)
			default:
				w.after(pause, round)
			}
		}
		w.round(c, list, &over, judge)
	}
	round()
}

// runRivals has two changes made at once, each of which may be given up in the middle.
func runRivals(t testing.TB, seed uint64) (wrong string) {
	defer caught(&wrong)
	w := newMoveWorld(t, seed)
	for id := range uint64(3) {
		c := &moveClient{w: w, id: ClientID{id + 1, seed}, m: w.newest}
		c.push()
	}
	w.fetch()
	w.run(2 * time.Second)
	for n := range 3 {
		from := w.newest
		var to [2]*Map
		for i := range to {
			to[i] = w.moveMap(from.Version+1+w.rng.Uint32N(2), moveShards)
			if w.rng.IntN(4) == 0 { // nothing moves
				to[i].Bounds = from.Bounds
			}
		}
		// Both at once; then, by turns, whichever is not refused is made again.
		ends := 0
		for i := range to {
			w.after(time.Duration(w.rng.Int64N(int64(100*time.Millisecond))), func() {
				w.rival(from, to[i], w.now+time.Duration(w.rng.Int64N(int64(time.Second))), func(bool, error) { ends++ })
			})
		}
		for ends < 2 {
			w.run(50 * time.Millisecond)
		}
		done, why := [2]bool{}, [2]error{}
		for try := 0; try < 6 && !done[0] && !done[1]; try++ {
			i, over := try%2, false
			w.rival(from, to[i], w.now+10*time.Second, func(ok bool, err error) { over, done[i], why[i] = true, ok, err })
			for !over {
				w.run(50 * time.Millisecond)
			}
		}
		switch {
		case done[0]:
			w.newest = to[0]
		case done[1]:
			w.newest = to[1]
		default:
			return fmt.Sprintf("change %d: %d to %v, and to %v: neither can be completed: %v; %v\n%v\n%v\n%v", n, from.Version, to[0].Version, to[1].Version, why[0], why[1], from.Bounds, to[0].Bounds, to[1].Bounds)
		}
		w.run(3 * time.Second)
		for _, n := range w.nodes {
			if s := n.g.shard; s.own.sum() != w.newest.sum() {
				return fmt.Sprintf("%s has map version %d with sum %x, must have %d with %x", n.addr, s.own.version(), s.own.sum(), w.newest.Version, w.newest.sum())
			}
		}
	}
	w.stop = true
	w.run(8 * time.Second)
	if w.open > 0 {
		return fmt.Sprintf("%d pushes were not answered", w.open)
	}
	for _, n := range w.nodes {
		s := n.g.shard
		for key := range uint64(moveKeys) {
			if w.newest.Owner(key) == s.own.shard {
				if got := s.value(key); got != w.issued[key] {
					return fmt.Sprintf("%s has %v pushes of key %d, must have %v", n.addr, got, key, w.issued[key])
				}
			}
		}
	}
	return ""
}

// TestRivalMoves: two different changes of a map are made at once, of other or the same
// shards, with other or the same versions; each may be given up at any step. One of them
// completes, the other is refused, and no push is lost.
func TestRivalMoves(t *testing.T) {
	skipModel(t)
	seeds := uint64(10)
	if n, err := strconv.ParseUint(os.Getenv("VIRTUAL_SEEDS"), 10, 64); err == nil {
		seeds = n
	} else if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		if wrong := runRivals(t, seed); wrong != "" {
			t.Errorf("seed %d: %s", seed, wrong)
		}
	}
}
