package mr

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/internal/cconst"
)

func TestConstants(t *testing.T) {
	want, err := cconst.Load("testdata/constants.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range cconst.Diff(map[string]uint64{
		"IB_UVERBS_ACCESS_LOCAL_WRITE":                 uint64(LocalWrite),
		"IB_UVERBS_ACCESS_REMOTE_WRITE":                uint64(RemoteWrite),
		"IB_UVERBS_ACCESS_REMOTE_READ":                 uint64(RemoteRead),
		"IB_UVERBS_ACCESS_REMOTE_ATOMIC":               uint64(RemoteAtomic),
		"IB_UVERBS_ACCESS_MW_BIND":                     uint64(WindowBind),
		"IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH":          uint64(Prefetch),
		"IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE":    uint64(PrefetchWrite),
		"IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT": uint64(PrefetchNoFault),
		"IB_UVERBS_ACCESS_ON_DEMAND":                   uint64(OnDemand),
		"IB_UVERBS_ACCESS_HUGETLB":                     uint64(HugeTLB),
		"IB_UVERBS_ACCESS_RELAXED_ORDERING":            uint64(RelaxedOrdering),
		"IB_UVERBS_ACCESS_OPTIONAL_RANGE":              uint64(OptionalRange),
	}, want) {
		t.Error(d)
	}
}

func TestAccessString(t *testing.T) {
	for a, want := range map[Access]string{
		0:                       "local-read",
		LocalWrite:              "local-write",
		LocalWrite | RemoteRead: "local-write|remote-read",
		RemoteAtomic | OnDemand | HugeTLB | RemoteWrite: "remote-write|remote-atomic|on-demand|huge-tlb",
		RelaxedOrdering:    "relaxed-ordering",
		LocalWrite | 1<<31: "local-write|0x80000000",
		1 << 5:             "0x20",
		WindowBind:         "window-bind",
	} {
		if got := a.String(); got != want {
			t.Errorf("%#x: %q, want %q", uint32(a), got, want)
		}
	}
}

// Every combination of the low four flags: remote write and atomic need local
// write.
func TestAccessCheck(t *testing.T) {
	for a := Access(0); a < 16; a++ {
		remoteStore := a&2 != 0 || a&8 != 0
		bad := remoteStore && a&1 == 0
		err := a.Check()
		if (err != nil) != bad {
			t.Errorf("%v: error %v, want one: %v", a, err, bad)
		}
		if err != nil && !errors.Is(err, ErrAccess) {
			t.Errorf("%v: %v does not wrap ErrAccess", a, err)
		}
	}
}

// contains is Region.Contains over the integers, where nothing wraps.
func contains(r Region, addr, n uint64) bool {
	b := func(v uint64) *big.Int { return new(big.Int).SetUint64(v) }
	end := func(a, n uint64) *big.Int { return b(0).Add(b(a), b(n)) }
	return b(addr).Cmp(b(r.Addr)) >= 0 && end(addr, n).Cmp(end(r.Addr, r.Length)) <= 0
}

func TestContains(t *testing.T) {
	const top = ^uint64(0)
	for _, tt := range []struct {
		desc    string
		r       Region
		addr, n uint64
		want    bool
	}{
		{"all of it", Region{Addr: 100, Length: 10}, 100, 10, true},
		{"nothing, at its end", Region{Addr: 100, Length: 10}, 110, 0, true},
		{"nothing, past its end", Region{Addr: 100, Length: 10}, 111, 0, false},
		{"one byte too many", Region{Addr: 100, Length: 10}, 101, 10, false},
		{"starts before it", Region{Addr: 100, Length: 10}, 99, 2, false},
		{"ends at 2^64", Region{Addr: top - 9, Length: 10}, top - 9, 10, true},
		{"last byte before 2^64", Region{Addr: top - 9, Length: 10}, top, 1, true},
		{"wraps past 2^64", Region{Addr: top - 9, Length: 10}, top, 2, false},
		{"wraps around into it", Region{Addr: 0, Length: 10}, top, 2, false},
		{"length wraps the sum to a small one", Region{Addr: 100, Length: 10}, 105, top - 100, false},
		{"largest length", Region{Addr: 0, Length: top}, 0, top, true},
		{"largest length, one on", Region{Addr: 0, Length: top}, 1, top, false},
		{"empty region", Region{Addr: 100}, 100, 0, true},
		{"empty region, one byte", Region{Addr: 100}, 100, 1, false},
	} {
		if got := tt.r.Contains(tt.addr, tt.n); got != tt.want || got != contains(tt.r, tt.addr, tt.n) {
			t.Errorf("%s: Contains(%#x, %#x) of %v = %v, want %v", tt.desc, tt.addr, tt.n, tt.r, got, tt.want)
		}
	}
}

// Random regions and ranges, most of them near the borders, against big integers.
func TestContainsTwin(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	near := func(v uint64) uint64 { return v + rnd.Uint64N(5) - 2 }
	pick := func(vs ...uint64) uint64 { return near(vs[rnd.IntN(len(vs))]) }
	for range 200_000 {
		r := Region{Addr: pick(0, 1<<32, 1<<63, rnd.Uint64()), Length: pick(0, 1<<20, 1<<63, rnd.Uint64())}
		addr, n := pick(r.Addr, r.Addr+r.Length, 0, rnd.Uint64()), pick(r.Length, 0, -r.Addr, rnd.Uint64())
		if got, want := r.Contains(addr, n), contains(r, addr, n); got != want {
			t.Fatalf("Contains(%#x, %#x) of %v = %v, want %v", addr, n, r, got, want)
		}
	}
}

func TestAddr(t *testing.T) {
	b := make([]byte, 16)
	if Addr(b) == 0 || Addr(b[3:]) != Addr(b)+3 || Addr(b[:0]) != Addr(b) {
		t.Errorf("Addr of a slice %#x, from its 4th byte %#x, empty %#x", Addr(b), Addr(b[3:]), Addr(b[:0]))
	}
	if Addr(nil) != 0 || Addr([]byte{}) != 0 {
		t.Errorf("Addr without storage: %#x, %#x, want 0", Addr(nil), Addr([]byte{}))
	}
}

func TestNoAllocs(t *testing.T) {
	r, b := Region{Addr: 1 << 40, Length: 1 << 20}, make([]byte, 8)
	if n := testing.AllocsPerRun(100, func() { _ = r.Contains(Addr(b), 8) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
