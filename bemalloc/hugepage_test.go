package bemalloc

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/mr"
)

// TestRoundToPage is the arithmetic of case C09: lengths are rounded up to whole
// pages of the kind that backs them.
func TestRoundToPage(t *testing.T) {
	const k4, m2, g1 = 4 << 10, 2 << 20, 1 << 30
	for _, c := range []struct{ n, page, want int64 }{
		{3_779_571_220, m2, 3_781_165_056},
		{4_434_553_733, m2, 4_435_476_480},
		{998_579_896, m2, 1_000_341_504},
		{773_094_113, m2, 773_849_088},
		{1, k4, k4}, {k4, k4, k4}, {k4 + 1, k4, 2 * k4},
		{1, g1, g1}, {g1, g1, g1}, {3_779_571_220, g1, 4 * g1},
		{0, m2, 0},
	} {
		if got := roundUp(c.n, c.page); got != c.want {
			t.Errorf("roundUp(%d, %d) = %d, want %d", c.n, c.page, got, c.want)
		}
	}
}

var errUnaligned = errors.New("EINVAL: region does not start and end on a huge page")

// pageChecker is a device that refuses regions that are not whole pages.
type pageChecker struct {
	*registrar
	page uint64
}

func (c pageChecker) Register(buf []byte, access mr.Access) (mr.Region, error) {
	if (mr.Addr(buf)|uint64(len(buf)))%c.page != 0 {
		return mr.Region{}, errUnaligned
	}
	return c.registrar.Register(buf, access)
}

// TestWholePagesRegistered is the rest of case C09: whatever is asked for, what is
// registered is whole pages, lies within the reservation, and is shared with no
// memory outside the pool. Control: the device refuses the lengths themselves.
func TestWholePagesRegistered(t *testing.T) {
	for _, page := range []uint64{4 << 10, 64 << 10, 2 << 20} {
		dev := pageChecker{newRegistrar(t), page}
		p := newPool(t, Config{Registrar: dev, ReserveBytes: 2 << 30})
		for _, n := range []int{1, 5000, 33_000, 773_094, 5_434_553, 38_579_897} {
			b := must(t)(p.Alloc(n))
			for _, part := range [][]byte{b, b[n/2:], b[n-1:]} {
				r, err := p.MR(part)
				if err != nil || !r.Contains(mr.Addr(part), uint64(len(part))) {
					t.Errorf("%d bytes: %v, %v", n, r, err)
				}
				if r.Addr < p.mem.addr || r.Addr+r.Length > p.mem.addr+p.mem.size {
					t.Errorf("%v reaches past the reservation", r)
				}
			}
			if n > blockSize {
				if _, err := dev.Register(b, 0); !errors.Is(err, errUnaligned) {
					t.Errorf("control: the device took %d bytes as they are: %v", n, err)
				}
			}
			free(t, p, b)
		}
	}
}

// TestHugeTLB takes pages of the kernel's reserved pool, or falls back and counts.
func TestHugeTLB(t *testing.T) {
	for _, mode := range []HugeMode{HugeOff, HugeAdvise, HugeTLB} {
		p := newPool(t, Config{HugePages: mode, Registrar: newRegistrar(t), noJanitor: true})
		for range 2 {
			b := must(t)(p.Alloc(5 << 20))
			for i := range b {
				if b[i] != 0 {
					t.Fatalf("mode %d: byte %d of a fresh block is %#x", mode, i, b[i])
				}
				b[i] = 1
			}
			free(t, p, b)
			p.Trim(0)
		}
		if n := p.Stats().HugeFallbacks; n > 0 && mode != HugeTLB {
			t.Errorf("mode %d: %d fallbacks", mode, n)
		}
	}
}
