package ps

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// runMoves runs changes of the map under load; it tells what is wrong.
func runMoves(t testing.TB, seed uint64, spoil func(*moveWorld)) (w *moveWorld, wrong string) {
	defer caught(&wrong)
	w = newMoveWorld(t, seed)
	if spoil != nil {
		spoil(w)
	}
	for id := range uint64(3) {
		c := &moveClient{w: w, id: ClientID{id + 1, seed}, m: w.newest}
		c.push()
	}
	w.changes = 4
	w.fetch()
	w.after(time.Second, w.coordinate)
	if seed%4 != 0 {
		w.after(time.Second, func() { w.fault(nil) })
	}
	for w.done < 4 && w.now < time.Minute {
		w.run(100 * time.Millisecond)
	}
	done, at := w.done, w.now
	w.stop = true
	w.run(8 * time.Second)
	if done < 4 {
		return w, fmt.Sprintf("%d changes of 4 after %v", done, at)
	}
	if w.open > 0 {
		return w, fmt.Sprintf("%d pushes were not answered", w.open)
	}
	for _, n := range w.nodes {
		s, rows := n.g.shard, 0
		if w.newest.Version != s.own.m.Version && s.own.shard < len(w.newest.Replicas) || s.own.before != nil || n.g.trouble != nil || n.g.forgot != 0 || n.g.change.ticket != 0 || n.g.stage != nil {
			return w, fmt.Sprintf("%s has map version %d of %d, %v; %+v, %+v", n.addr, s.own.m.Version, w.newest.Version, n.g.trouble, n.g.change, n.g.stage)
		}
		for key := range uint64(moveKeys) {
			if w.newest.Owner(key) != s.own.shard {
				continue
			}
			if got := s.value(key); got != w.issued[key] {
				return w, fmt.Sprintf("%s has %v pushes of key %d, must have %v", n.addr, got, key, w.issued[key])
			}
			if w.issued[key] > 0 {
				rows++
			}
		}
		if s.table.rows != rows {
			return w, fmt.Sprintf("%s has %d rows, %d are its own", n.addr, s.table.rows, rows)
		}
	}
	return w, ""
}

// TestMoves: maps change one after the other, with another shard and without it, while
// clients push and repeat, requests are lost and come twice and late, replicas die and
// hang, and coordinators die at any step or go on beside the next. Each push is applied
// once, none that was answered is missing where its row is served, at any time, and in the
// end all replicas have the last map, and their own rows alone. The controls: without the
// freeze, or with rows moved before replicas have exchanged what they have, pushes are
// lost.
func TestMoves(t *testing.T) {
	skipModel(t)
	seeds := uint64(16)
	if n, err := strconv.ParseUint(os.Getenv("VIRTUAL_SEEDS"), 10, 64); err == nil {
		seeds = n
	} else if testing.Short() {
		seeds = 10
	}
	faults, crashes, attempts := 0, map[phase]int{}, 0
	for seed := range seeds {
		w, wrong := runMoves(t, seed, nil)
		if wrong != "" {
			t.Errorf("seed %d: %s", seed, wrong)
		}
		faults, attempts = faults+w.faults, attempts+w.coordinators
		for p, n := range w.crashes {
			crashes[p] += n
		}
	}
	t.Logf("%d coordinators, which died or had a replica struck in phases %v; %d replicas died or hung", attempts, crashes, faults)
	for desc, spoil := range map[string]func(*moveWorld){
		"no freeze": func(w *moveWorld) { w.noFreeze = true },
		"no cut":    func(w *moveWorld) { w.noCut = true },
	} {
		seen := ""
		for seed := uint64(0); seed < 60 && !strings.Contains(seen, "pushes of"); seed++ {
			_, seen = runMoves(t, seed, spoil)
		}
		if !strings.Contains(seen, "pushes of") {
			t.Errorf("control: %s: nothing is wrong", desc)
		}
		t.Logf("%s: %s", desc, seen)
	}
}

// skipModel leaves a model of one goroutine out where only races are looked for.
func skipModel(t *testing.T) {
	if slowed {
		t.Skip("one goroutine has no races, and the race detector makes it ten times as slow")
	}
}
