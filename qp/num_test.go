package qp

import (
	"testing"
	"testing/quick"
	"time"
)

const psns = 1 << 24

// A twin of the PSN arithmetic that walks the circle with plain integers: the
// distance is the shorter way round, and half the circle counts as behind.
func twinSub(p, q PSN) int32 {
	d := (int64(p) - int64(q) + psns) % psns
	if d >= psns/2 {
		d -= psns
	}
	return int32(d)
}

func TestPSN(t *testing.T) {
	check := func(a, b, n uint32) bool {
		p, q := PSN(a)&PSNMask, PSN(b)&PSNMask
		return p.Sub(q) == twinSub(p, q) &&
			p.Less(q) == (twinSub(p, q) < 0) &&
			p.Add(n) == PSN((uint64(p)+uint64(n))%psns) &&
			p.Add(n%(psns/2)).Sub(p) == int32(n%(psns/2)) &&
			p.Add(n).Add(-n) == p
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 100_000}); err != nil {
		t.Error(err)
	}
	edges := []uint32{0, 1, 2, psns/2 - 1, psns / 2, psns/2 + 1, psns - 2, psns - 1}
	for _, a := range edges {
		for _, b := range edges {
			for _, n := range append(edges, psns, psns+1, 1<<32-1) {
				if !check(a, b, n) {
					t.Errorf("PSN %#x, %#x, step %#x: not as the twin", a, b, n)
				}
			}
		}
	}
}

func TestPSNWrap(t *testing.T) {
	last := PSN(psns - 1)
	if last.Add(1) != 0 || !last.Less(0) || PSN(0).Less(last) || PSN(0).Sub(last) != 1 || last.Sub(0) != -1 {
		t.Error("the PSN after 2^24-1 is not 0, or does not come after it")
	}
	if got := PSN(psns / 2).Sub(0); got != -psns/2 {
		t.Errorf("half the circle away: %d, want behind", got)
	}
}

// The RNR timer table in milliseconds, as the specification prints it (IBTA 1.4,
// table 45).
func TestRNRTimer(t *testing.T) {
	ms := [32]float64{
		655.36, .01, .02, .03, .04, .06, .08, .12, .16, .24, .32, .48, .64, .96, 1.28, 1.92, 2.56, 3.84, 5.12, 7.68, 10.24, 15.36,
		20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
	}
	for i, want := range ms {
		want := time.Duration(want*1000+.5) * time.Microsecond
		if got := RNRTimer(i).Duration(); got != want {
			t.Errorf("RNR timer %d is %v, want %v", i, got, want)
		}
		if got := RNRTimer(i + 32).Duration(); got != want {
			t.Errorf("RNR timer %d is %v, want the low 5 bits' %v", i+32, got, want)
		}
	}
	if got := DefaultRNRTimer.Duration(); got != 640*time.Microsecond {
		t.Errorf("default RNR timer is %v", got)
	}
}

func TestAckTimeout(t *testing.T) {
	want := 4096 * time.Nanosecond
	for i := 1; i < 32; i++ {
		want *= 2
		if got := AckTimeout(i).Duration(); got != want {
			t.Errorf("timeout %d is %v, want %v", i, got, want)
		}
		if got := AckTimeout(i + 32).Duration(); got != want {
			t.Errorf("timeout %d is %v, want the low 5 bits' %v", i+32, got, want)
		}
	}
	if AckTimeout(0).Duration() != 0 || AckTimeout(32).Duration() != 0 {
		t.Error("timeout 0 is not never")
	}
	if got := DefaultAckTimeout.Duration().Round(time.Millisecond); got != 67*time.Millisecond {
		t.Errorf("default timeout is %v", got)
	}
}
