package scenario

import "testing"

// TestEnginePages: messages of engines lie over the memory that the scenario gives hosts,
// whose pages the NIC fetches as it needs them: many of 4 KiB, few of 2 MiB. A message of
// which pages are fetched takes longer. All in one place, they need few of any size.
// Requests that are fetched make it longer, too.
func TestEnginePages(t *testing.T) {
	run := func(memory, page int, wqes bool) (r *Run, mean int64) {
		s := small(t, "incast")
		if err := s.Scale(2); err != nil { // nothing else that takes time
			t.Fatal(err)
		}
		if err := s.Pick([]string{"adaptive"}); err != nil {
			t.Fatal(err)
		}
		s.Workload.Outstanding = 1
		s.NIC.MTTCache.Entries, s.NIC.PageBytes, s.Workload.MemoryBytes = 512, page, memory
		if wqes {
			s.NIC.WQECache.Entries = 256
		}
		s.fill()
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
		r = runAll(t, s)[0]
		c := r.Class("message")
		if c.Unfinished > 0 || c.Count == 0 {
			t.Errorf("%d messages, %d did not end", c.Count, c.Unfinished)
		}
		return r, c.MeanNS
	}
	misses := func(r *Run) uint64 { return r.Counter("mtt_misses") }
	place, _ := run(0, 4096, false)
	many, small := run(64<<20, 4096, false)
	few, huge := run(64<<20, 2<<20, false)
	wqes, fetched := run(64<<20, 2<<20, true)
	if misses(many) < 5*misses(place) || misses(many) < 5*misses(few) {
		t.Errorf("fetches: %d of one place, %d of 64 MiB in pages of 4 KiB, %d of 2 MiB", misses(place), misses(many), misses(few))
	}
	if small <= huge+300 || fetched <= huge+300 || wqes.Counter("wqe_misses") == 0 {
		t.Errorf("the mean message takes %d ns with pages of 4 KiB, %d of 2 MiB, and there %d with requests fetched (%d)", small, huge, fetched, wqes.Counter("wqe_misses"))
	}
}
