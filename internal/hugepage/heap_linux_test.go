package hugepage

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// TestHeap: small objects that are made afterwards lie in memory for which huge pages
// were asked.
func TestHeap(t *testing.T) {
	if b, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"); err != nil || strings.Contains(string(b), "[never]") {
		t.Skip("no transparent huge pages on this machine")
	}
	if err := Heap(64 << 20); err != nil {
		t.Fatal(err)
	}
	const n = 8 << 10
	keep := make([][]byte, n)
	asked := 0
	for i := range keep {
		keep[i] = make([]byte, 4096)
	}
	advised := advised(t)
	for _, b := range keep {
		for _, r := range advised {
			if a := uint64(uintptr(unsafe.Pointer(&b[0]))); r[0] <= a && a < r[1] {
				asked++
			}
		}
	}
	if asked < n*9/10 {
		t.Errorf("%d of %d pages lie where huge ones were asked for, in %d ranges", asked, n, len(advised))
	}
}

// TestHeapTooLarge: what no machine has is refused before the runtime ends the process.
func TestHeapTooLarge(t *testing.T) {
	if err := Heap(1 << 50); err == nil {
		t.Error("2^50 bytes were taken for possible")
	}
}

// advised are the ranges of addresses for which huge pages were asked.
func advised(t *testing.T) (ranges [][2]uint64) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	var last [2]uint64
	for s := bufio.NewScanner(f); s.Scan(); {
		word, rest, _ := strings.Cut(s.Text(), " ")
		if from, to, ok := strings.Cut(word, "-"); ok {
			last[0], _ = strconv.ParseUint(from, 16, 64)
			last[1], _ = strconv.ParseUint(to, 16, 64)
		} else if word == "VmFlags:" && strings.Contains(rest+" ", " hg ") {
			ranges = append(ranges, last)
		}
	}
	return ranges
}
