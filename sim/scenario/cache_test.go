package scenario

import "testing"

// TestEnginePages: messages of engines lie over the memory that the scenario gives hosts,
// whose pages the NIC fetches as it needs them: many of 4 KiB, few of 2 MiB. Pushes take
// longer with many. All in one place, they need few of any size. Requests that are
// fetched make them longer, too.
func TestEnginePages(t *testing.T) {
	run := func(memory, page int, wqes bool) (r *Run) {
		s := small(t, "training")
		if err := s.Pick([]string{"adaptive"}); err != nil {
			t.Fatal(err)
		}
		s.NIC.MTTCache.Entries, s.NIC.PageBytes, s.Workload.MemoryBytes = 512, page, memory
		if wqes {
			s.NIC.WQECache.Entries = 256
		}
		s.fill()
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
		r = runAll(t, s)[0]
		if c := r.Class("push"); c.Unfinished > 0 || c.Count == 0 {
			t.Errorf("%d pushes, %d did not end", c.Count, c.Unfinished)
		}
		return r
	}
	misses := func(r *Run) uint64 { return r.Counter("mtt_misses") }
	place, many, huge, wqes := run(0, 4096, false), run(64<<20, 4096, false), run(64<<20, 2<<20, false), run(64<<20, 2<<20, true)
	if misses(many) < 10*misses(place) || misses(many) < 10*misses(huge) {
		t.Errorf("fetches: %d of one place, %d of 64 MiB in pages of 4 KiB, %d of 2 MiB", misses(place), misses(many), misses(huge))
	}
	mean := func(r *Run) int64 { return r.Class("push").MeanNS }
	if mean(many) <= mean(huge) || mean(wqes) <= mean(huge) || wqes.Counter("wqe_misses") == 0 {
		t.Errorf("the mean push takes %d ns with pages of 4 KiB, %d of 2 MiB, and there %d with requests fetched (%d)", mean(many), mean(huge), mean(wqes), wqes.Counter("wqe_misses"))
	}
}
