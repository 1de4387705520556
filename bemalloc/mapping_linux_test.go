package bemalloc

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// mapped reports whether anything is mapped at p's reservation.
func mapped(t *testing.T, addr, size uint64) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skipf("cannot see mappings: %v", err)
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if from < addr+size && addr < to {
			return true
		}
	}
	return false
}

// TestNothingMapped: Close gives the address space back, and so does a New that
// fails. Control: before Close it is mapped.
func TestNothingMapped(t *testing.T) {
	for _, mode := range []HugeMode{HugeOff, HugeAdvise, HugeTLB} {
		p := newPool(t, Config{HugePages: mode, PreallocBytes: 8 << 20})
		if !mapped(t, p.mem.addr, p.mem.size) {
			t.Error("control: the reservation is not mapped")
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if mapped(t, p.mem.addr, p.mem.size) {
			t.Error("the reservation is mapped after Close")
		}
	}
}

// TestReserveHalved: more than the system grants is halved, not refused.
func TestReserveHalved(t *testing.T) {
	p := newPool(t, Config{ReserveBytes: 1 << 46}) // cut to what a pool can number
	if p.mem.size > uint64(maxReserve) || p.mem.addr%blockSize != 0 {
		t.Errorf("reservation of %d at %#x", p.mem.size, p.mem.addr)
	}
}
