package ps

import (
	"math/rand/v2"
	"testing"
)

// TestTableAgainstModel: rows come and go, and are lent, as in a map; what is swept away
// takes no memory when nothing of it is lent any more, and what remains is as it was.
func TestTableAgainstModel(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 9))
		m := &Map{Version: 1, By: ByRange, Bounds: []Bound{{0, 0}}, Replicas: mapOf(1).Replicas}
		other := &Map{Version: 2, By: ByRange, Bounds: []Bound{{0, 0}, {500, 1}}, Replicas: append(mapOf(1).Replicas, nil)}
		s := newTestShard(t, Config{Map: m, MaxRows: 2000})
		s.table.chunkShift = 4 // 16 rows
		model := map[uint64]float32{}
		var loans []*loan
		for range 30 {
			s.own.m = m
			for range 100 {
				key := rng.Uint64N(1000)
				n, err := s.findOrCreate(key, Hash(key))
				if err == nil {
					err = s.table.makeWritable(key, Hash(key), n)
				}
				if err != nil {
					t.Fatal(err)
				}
				model[key] = rng.Float32()
				s.table.row(s.table.find(key, Hash(key)))[0] = model[key]
				if rng.IntN(10) == 0 {
					l := newLoan(s.table)
					l.add(s.table.find(key, Hash(key)))
					loans = append(loans, l)
				}
			}
			if rng.IntN(3) == 0 {
				s.own.m = other
				s.sweep.begin()
				for key := range model {
					if key >= 500 {
						delete(model, key)
					}
				}
			}
			for steps := rng.IntN(5); steps > 0 && s.sweep.active; steps-- {
				s.sweepStep()
			}
			for s.sweep.removes() { // as replicas do before rows are brought again
				s.sweepStep()
			}
			for len(loans) > 0 && rng.IntN(3) > 0 {
				i := rng.IntN(len(loans))
				loans[i].end()
				loans = append(loans[:i], loans[i+1:]...)
			}
			if s.table.rows != len(model) {
				t.Fatalf("seed %d: %d rows of %d", seed, s.table.rows, len(model))
			}
			for key := range uint64(1000) {
				want, is := model[key]
				n := s.table.find(key, Hash(key))
				if is != (n != 0) || is && s.table.row(n)[0] != want {
					t.Fatalf("seed %d: key %d at %d, is there %t, %v", seed, key, n, is, want)
				}
			}
		}
		for _, l := range loans {
			l.end()
		}
		s.own.m = other
		s.sweep.begin()
		for steps := 0; s.sweep.active; steps++ {
			if s.sweepStep(); steps > 1000 {
				t.Fatalf("seed %d: there is no end of it", seed)
			}
		}
		if need := (s.table.rows + 15) / 16; len(s.table.chunks) != need || s.table.slots != 16*need {
			t.Errorf("seed %d: %d chunks with %d slots for %d rows", seed, len(s.table.chunks), s.table.slots, s.table.rows)
		}
	}
}

// TestPulls: rows that are pushed to while they are pulled, with windows lost and asked for
// late, come to be the same at the puller; and a process that knows nothing of the
// puller has it begin anew.
func TestPulls(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 10))
		from := &Map{Version: 1, By: ByRange, Bounds: []Bound{{0, 0}}, Replicas: append(mapOf(1).Replicas, nil)}
		to := &Map{Version: 2, By: ByRange, Bounds: []Bound{{0, 0}, {300, 1}}, Replicas: from.Replicas}
		group := func(shard int) *group {
			s := newTestShard(t, Config{Map: from, Shard: shard, MaxRows: 20000, Optimizer: Adagrad})
			return newGroup(s, 0, 1, 1<<20, 9, testLease)
		}
		a, b := group(0), group(1)
		seq := uint64(0)
		push := func(n int) {
			for range n {
				seq++
				if err := a.shard.push(movePush(requestID{ClientID{1, 1}, seq}, 0, 1, []uint64{rng.Uint64N(250)})); err != nil {
					t.Fatal(err)
				}
			}
		}
		keyed := func(n int) { // more rows than a window has
			for key := range uint64(n) {
				if _, err := a.shard.load(key, []float32{float32(key)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		keyed(9000)
		push(100)
		a.beginChange(7, to)
		b.bring(7, to, []stageSource{{shard: 0}})
		var late []byte
		for step := 0; !b.stage.done; step++ {
			for b.shard.sweep.active {
				b.shard.sweepStep()
			}
			if step == 40 {
				b.finish(7)
			} else if step < 40 {
				push(rng.IntN(20))
			}
			if rng.IntN(40) == 0 && step < 40 { // the source begins anew
				a.endChange()
				a.beginChange(7, to)
			}
			i := b.nextPull()
			if i < 0 {
				continue
			}
			ask := b.askPull(nil, i)
			r, err := parsePull(ask)
			if err != nil {
				t.Fatal(err)
			}
			if late != nil && rng.IntN(3) == 0 {
				old, _ := parsePull(late)
				_, _ = a.pull(nil, old)
			}
			window, err := a.pull(nil, r)
			late = ask
			if rng.IntN(4) == 0 {
				err = errNoAnswer
			}
			b.pulled(b.stage, i, window, err)
			if step > 10000 {
				t.Fatalf("seed %d: there is no end of it: %+v", seed, b.stage)
			}
		}
		rows := 0
		for key := uint64(0); key < 9000; key++ {
			hash := Hash(key)
			m, n := a.shard.table.find(key, hash), b.shard.table.find(key, hash)
			if moves := key >= 300; moves != (n != 0) {
				t.Fatalf("seed %d: key %d is there: %t", seed, key, n != 0)
			} else if !moves {
				continue
			}
			rows++
			if !sameBits(a.shard.table.slot(m), b.shard.table.slot(n)) || *a.shard.table.version(m) != *b.shard.table.version(n) {
				t.Fatalf("seed %d: key %d is %v, must be %v", seed, key, b.shard.table.slot(n), a.shard.table.slot(m))
			}
		}
		head := b.head()
		for brought, want := range map[*Map]int{nil: 0, head.brought(): rows} {
			m := b.shard.image(brought)
			if len(m.rows) != want { // of a snapshot, and of a copy by another replica
				t.Errorf("seed %d: an image has %d rows, must have %d", seed, len(m.rows), want)
			}
			m.release()
		}
		if b.shard.table.rows != rows {
			t.Errorf("seed %d: %d rows, %d moved", seed, b.shard.table.rows, rows)
		}
	}
}
