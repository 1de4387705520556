package bemalloc

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// kilobytes reads one line of a file like /proc/meminfo; -1 if it is not there.
func kilobytes(t *testing.T, file, name string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Skip(err)
	}
	m := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+)`).FindSubmatch(text)
	if m == nil {
		return -1
	}
	n, _ := strconv.Atoi(string(m[1])) // digits
	return n
}

// TestHugeTLBPages: a block really lies in pages of the kernel's reserved pool, gives
// them back when it is closed, and without pages left falls back, which is counted.
func TestHugeTLBPages(t *testing.T) {
	const meminfo, rollup, field = "/proc/meminfo", "/proc/self/smaps_rollup", "Private_Hugetlb"
	pages := kilobytes(t, meminfo, "HugePages_Free")
	if pages < 2 || pages > 512 || kilobytes(t, meminfo, "Hugepagesize") != 2048 {
		t.Skipf("%d free huge pages of the kernel's pool: write 8 to /proc/sys/vm/nr_hugepages to run this", pages)
	}
	p := newPool(t, Config{HugePages: HugeTLB, RetainBytes: -1, noJanitor: true})
	b := must(t)(p.Alloc(1 << 20))
	if got := kilobytes(t, rollup, field); got != blockSize>>10 || p.Stats().HugeFallbacks != 0 {
		t.Errorf("%d KiB in huge pages, want %d; %d fallbacks", got, blockSize>>10, p.Stats().HugeFallbacks)
	}
	free(t, p, b)
	p.Trim(0)
	if got := kilobytes(t, rollup, field); got != 0 {
		t.Errorf("%d KiB in huge pages after Trim", got)
	}
	all := must(t)(p.Alloc((pages/2 + 1) * blockSize)) // one block more than there is
	if n := p.Stats().HugeFallbacks; n != 1 {
		t.Errorf("%d fallbacks, want 1", n)
	}
	all[0], all[len(all)-1] = 1, 1
	free(t, p, all)
}
