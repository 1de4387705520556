package ps

import "testing"

// TestLentRowsDoNotChange pushes to rows that are lent: the borrower sees the old
// values, everybody else the new ones, and memory is used again after the return.
func TestLentRowsDoNotChange(t *testing.T) {
	cfg := Config{Dim: 4, Shards: 1, InitialScale: 1}
	tab := newTable(&cfg)
	const keys = 8
	hash := func(key uint64) uint64 { return Hash(key) }
	for key := range uint64(keys) {
		if _, err := tab.create(key, hash(key)); err != nil {
			t.Fatal(err)
		}
	}
	set := func(key uint64, v float32) {
		if err := tab.makeWritable(key, hash(key), tab.find(key, hash(key))); err != nil {
			t.Fatal(err)
		}
		tab.row(tab.find(key, hash(key)))[0] = v
	}
	get := func(key uint64) float32 { return tab.row(tab.find(key, hash(key)))[0] }

	var loans []*loan
	for round := range 100 {
		l := newLoan(tab)
		for key := range uint64(keys) {
			set(key, float32(round))
			l.add(tab.find(key, hash(key)))
		}
		loans = append(loans, l)
		for key := range uint64(keys) {
			set(key, -1)
			set(key, float32(round)+0.5) // the second time in place
			if get(key) != float32(round)+0.5 {
				t.Fatalf("round %d: the key has %v", round, get(key))
			}
		}
		for i, b := range l.parts {
			if got := floatAt(b, 0); got != float32(round) {
				t.Fatalf("round %d: lent row %d changed to %v", round, i, got)
			}
		}
		if len(loans) == 3 { // returned in another order than lent
			loans[1].end()
			loans = append(loans[:1], loans[2])
		}
	}
	for _, l := range loans {
		l.end()
	}
	// Every key has one slot, and each of at most three loans held one more.
	if most := keys * 4; tab.slots > most {
		t.Errorf("%d slots for %d keys, at most %d were lent at a time", tab.slots, keys, most)
	}
	if free := len(tab.loans.free); free != tab.slots-keys {
		t.Errorf("%d of %d slots are free, %d are in use", free, tab.slots, keys)
	}
}

// TestClosedShard uses a shard after Close, with free slots and a loan out.
func TestClosedShard(t *testing.T) {
	for _, lent := range []bool{false, true} {
		s, err := NewShard(Config{Dim: 4})
		if err != nil {
			t.Fatal(err)
		}
		keys := []uint64{1, 2}
		if err := s.Create(keys); err != nil {
			t.Fatal(err)
		}
		l := newLoan(s.table)
		l.add(1)
		if err := s.table.makeWritable(1, Hash(1), 1); err != nil {
			t.Fatal(err)
		}
		if !lent {
			l.end()
		}
		s.Close()
		if err := s.Create([]uint64{3}); err != errClosed {
			t.Errorf("lent %v: Create of a closed shard: %v", lent, err)
		}
		if lent {
			if s.Rows() != len(keys) {
				t.Error("the rows went before their borrower returned them")
			}
			l.end()
		}
		if n := s.Rows(); n != 0 {
			t.Errorf("lent %v: %d rows are left", lent, n)
		}
		s.Close()
	}
}
