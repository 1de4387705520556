package archon

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestCallTableAgainstModel runs random operations on the table and on plain maps.
func TestCallTableAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	table := callTable{limit: 50}
	type entry struct {
		call     *Call
		deadline time.Duration
	}
	live, over := map[CallID]entry{}, []CallID{}
	var now time.Duration
	end := func(id CallID) {
		delete(live, id)
		over = append(over, id)
	}
	for step := range 100_000 {
		switch op := rng.IntN(10); {
		case op < 5:
			call, deadline := &Call{}, time.Duration(0)
			if rng.IntN(3) > 0 {
				deadline = now + time.Duration(1+rng.IntN(100))
			}
			id, ok := table.add(call, deadline)
			if ok != (len(live) < 50) {
				t.Fatalf("step %d: add with %d live: %v", step, len(live), ok)
			}
			if !ok {
				break
			}
			if _, dup := live[id]; dup {
				t.Fatalf("step %d: id %#x given twice", step, id)
			}
			live[id] = entry{call, deadline}
		case op < 8:
			for id, e := range live {
				if !table.has(id, e.call) || table.has(id, &Call{}) || table.take(id) != e.call {
					t.Fatalf("step %d: call %#x is not there", step, id)
				}
				end(id)
				break
			}
		case op < 9:
			now += time.Duration(rng.IntN(30))
			for call := table.takeExpired(now); call != nil; call = table.takeExpired(now) {
				found := false
				for id, e := range live {
					if e.call == call {
						if e.deadline == 0 || e.deadline > now {
							t.Fatalf("step %d: call expired early", step)
						}
						found = true
						end(id)
					}
				}
				if !found {
					t.Fatalf("step %d: expired a call that is over", step)
				}
			}
		default:
			for range 10 {
				id := CallID(rng.Uint64())
				if len(over) > 0 && rng.IntN(2) == 0 {
					id = over[rng.IntN(len(over))]
				}
				if _, ok := live[id]; !ok && table.take(id) != nil {
					t.Fatalf("step %d: took %#x, which is not live", step, id)
				}
			}
		}
		earliest, any := time.Duration(0), false
		for _, e := range live {
			if e.deadline != 0 && (!any || e.deadline < earliest) {
				earliest, any = e.deadline, true
			}
		}
		if got, ok := table.next(); ok != any || got != earliest {
			t.Fatalf("step %d: next deadline %v %v, want %v %v", step, got, ok, earliest, any)
		}
	}
	if got := len(table.takeAll()); got != len(live) || table.live != 0 {
		t.Errorf("took %d at the end, want %d", got, len(live))
	}
}

func TestCallIDsWrap(t *testing.T) {
	table := callTable{limit: 1}
	first, _ := table.add(&Call{}, 0)
	table.take(first)
	table.slots[0].generation = 1<<32 - 1
	last, _ := table.add(&Call{}, 0)
	if last.generation() != 1<<32-1 || table.take(last) == nil {
		t.Fatalf("last generation: %#x", last)
	}
	wrapped, _ := table.add(&Call{}, 0)
	if wrapped.generation() != 0 || table.take(last) != nil {
		t.Errorf("after the wrap: %#x", wrapped)
	}
}
