package mr

import (
	"errors"
	"slices"
	"testing"
)

// ledger is a registrar that keeps account; it refuses the registration number fail.
type ledger struct {
	live        []Region
	calls, fail int
	stuck       bool // deregistration fails
}

var errRefused = errors.New("refused")

func (l *ledger) Register(buf []byte, _ Access) (Region, error) {
	if l.calls++; l.calls == l.fail || len(buf) == 0 {
		return Region{}, errRefused
	}
	r := Region{Addr: Addr(buf), Length: uint64(len(buf)), LKey: LKey(l.calls)}
	l.live = append(l.live, r)
	return r, nil
}

func (l *ledger) Deregister(r Region) error {
	i := slices.Index(l.live, r)
	if l.stuck || i < 0 {
		return errRefused
	}
	l.live = slices.Delete(l.live, i, i+1)
	return nil
}

// Every byte of the buffer is found in the region that was registered for it.
func TestSplit(t *testing.T) {
	buf := make([]byte, 10<<20+123)
	for _, tt := range []struct {
		limit uint64
		n     int
		step  uint64
	}{
		{0, 1, 10<<20 + 123}, {1 << 30, 1, 10<<20 + 123}, {10<<20 + 123, 1, 10<<20 + 123},
		{4 << 20, 3, 4 << 20}, {5<<20 + 1, 3, 4 << 20}, // whole huge pages
		{2<<20 - 1, 6, 2<<20 - 4096}, // whole pages
		{3000, 3496, 3000},
	} {
		l := &ledger{}
		s, err := RegisterSplit(l, buf, LocalWrite, tt.limit)
		if err != nil || len(s.Regions()) != tt.n || s.step != tt.step {
			t.Fatalf("limit %d: %v, %d regions of %d bytes; want %d of %d", tt.limit, err, len(s.Regions()), s.step, tt.n, tt.step)
		}
		for off := uint64(0); off < uint64(len(buf)); off += 997 {
			r, left := s.At(off)
			if addr := Addr(buf) + off; !r.Contains(addr, left) || left == 0 || r.Contains(addr, left+1) || tt.limit > 0 && r.Length > tt.limit {
				t.Fatalf("limit %d: byte %d in %v, %d bytes left", tt.limit, off, r, left)
			}
		}
		if r, left := s.At(uint64(len(buf))); r != (Region{}) || left != 0 {
			t.Errorf("limit %d: beyond the end: %v, %d", tt.limit, r, left)
		}
		if n := testing.AllocsPerRun(10, func() { s.At(5) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
		if err := s.Close(); err != nil || len(l.live) != 0 {
			t.Errorf("limit %d: closed with %v, %d regions left", tt.limit, err, len(l.live))
		}
		if r, left := s.At(0); r != (Region{}) || left != 0 || s.Close() != nil {
			t.Errorf("limit %d: a closed one has %v", tt.limit, r)
		}
	}
}

// A registration that fails leaves nothing; a deregistration that fails can be
// tried again.
func TestSplitFailures(t *testing.T) {
	buf := make([]byte, 64<<10)
	for fail := 1; fail <= 16; fail++ {
		l := &ledger{fail: fail}
		if s, err := RegisterSplit(l, buf, 0, 4096); !errors.Is(err, errRefused) || s != nil || len(l.live) != 0 {
			t.Errorf("registration %d refused: %v, %d regions left", fail, err, len(l.live))
		}
	}
	if _, err := RegisterSplit(&ledger{}, nil, 0, 4096); !errors.Is(err, errRefused) {
		t.Errorf("empty buffer: %v", err)
	}
	l := &ledger{}
	s, err := RegisterSplit(l, buf, 0, 4096)
	if err != nil {
		t.Fatal(err)
	}
	l.stuck = true
	if err := s.Close(); !errors.Is(err, errRefused) || len(l.live) != 16 {
		t.Errorf("stuck: %v, %d regions left", err, len(l.live))
	}
	l.stuck = false
	if err := s.Close(); err != nil || len(l.live) != 0 {
		t.Errorf("then: %v, %d regions left", err, len(l.live))
	}
}

func TestNextKey(t *testing.T) {
	for k, want := range map[RKey]RKey{0: 1, 0x1234: 0x1235, 0x12ff: 0x1200, 0xffffffff: 0xffffff00} {
		if k.Next() != want {
			t.Errorf("after %#x comes %#x, want %#x", k, k.Next(), want)
		}
	}
	if s := (Window{RKey: 0x1234}).String(); s != "mw[rkey 0x1234]" {
		t.Error(s)
	}
}

func TestAdviceString(t *testing.T) {
	for a, want := range map[Advice]string{Prefetch: "prefetch", PrefetchWrite: "prefetch-write", PrefetchNoFault: "prefetch-no-fault", 9: "advice 9"} {
		if a.String() != want {
			t.Errorf("%v, want %s", a, want)
		}
	}
}
