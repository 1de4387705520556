package des

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"
)

func TestEventSize(t *testing.T) {
	if n := unsafe.Sizeof(event{}); n != 32 {
		t.Errorf("an event takes %d bytes, want 32", n)
	}
}

func TestOrder(t *testing.T) {
	k := New()
	var got []int32
	h := k.Handle(func(a, b int32) { got = append(got, a) })
	for i, at := range []Time{30, 10, 20, 10, 30, 10} {
		k.At(at, h, int32(i), 0)
	}
	if err := k.Run(20); err != nil {
		t.Fatal(err)
	}
	if want := []int32{1, 3, 5, 2}; !slices.Equal(got, want) || k.Now() != 20 || k.Pending() != 2 || k.Next() != 30 {
		t.Errorf("%v at %d, %d pending, next at %d; want %v at 20, 2 pending, next at 30", got, k.Now(), k.Pending(), k.Next(), want)
	}
	k.At(5, h, 9, 0) // has passed: now
	if err := k.Run(Never); err != nil {
		t.Fatal(err)
	}
	if want := []int32{1, 3, 5, 2, 9, 0, 4}; !slices.Equal(got, want) || k.Now() != 30 || k.Events() != 7 {
		t.Errorf("%v at %d after %d events", got, k.Now(), k.Events())
	}
	if ran, err := k.Step(); ran || err != nil {
		t.Errorf("step of nothing: %v, %v", ran, err)
	}
}

// TestTies schedules from within handlers, too: what is scheduled later for the
// same time runs later.
func TestTies(t *testing.T) {
	k := New()
	var got []int32
	var h Kind
	h = k.Handle(func(a, b int32) {
		got = append(got, a)
		if b > 0 {
			k.At(k.Now(), h, a+100, b-1)
		}
	})
	for i := range int32(3) {
		k.At(7, h, i, 1)
	}
	if err := k.Run(Never); err != nil {
		t.Fatal(err)
	}
	if want := []int32{0, 1, 2, 100, 101, 102}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestGenerations cancels as owners do.
func TestGenerations(t *testing.T) {
	k := New()
	generation, ran := int32(0), 0
	h := k.Handle(func(_, b int32) {
		if b == generation {
			ran++
		}
	})
	k.At(10, h, 0, generation)
	generation++
	k.At(20, h, 0, generation)
	if err := k.Run(Never); err != nil || ran != 1 {
		t.Errorf("%d of 2 ran, want 1; %v", ran, err)
	}
}

func TestWatchdog(t *testing.T) {
	k := New()
	k.limit = 1000
	var h Kind
	h = k.Handle(func(a, b int32) { k.At(k.Now()+Time(a), h, a, 0) })
	k.At(5, h, 0, 0)
	var stuck *StuckError
	if err := k.Run(Never); !errors.As(err, &stuck) || stuck.At != 5 {
		t.Errorf("%v", err)
	}
	k = New()
	k.limit = 1000
	h = k.Handle(func(a, b int32) { k.At(k.Now()+Time(a), h, a, 0) })
	k.At(5, h, 1, 0)
	if err := k.Run(100_000); err != nil {
		t.Errorf("time moves, and still: %v", err)
	}
}

// TestAgainstSorting holds the queue to a reference that sorts, over random
// schedules with many ties.
func TestAgainstSorting(t *testing.T) {
	for seed := range uint64(50) {
		r := NewStream(seed, 0, 0, 0)
		var q queue
		var ref []event
		var after Time
		step := []Time{1, reach / 50, reach}[seed%3] // all near, some, hardly any
		for seq := range uint64(2000) {
			if r.N(5) < 2 && len(ref) > 0 {
				i := 0
				for j := range ref {
					if ref[j].before(&ref[i]) {
						i = j
					}
				}
				got := q.pop()
				if got != ref[i] {
					t.Fatalf("seed %d: %+v, want %+v", seed, got, ref[i])
				}
				after = got.at // as with a kernel, nothing is scheduled for before
				ref = slices.Delete(ref, i, i+1)
				continue
			}
			e := event{at: after + Time(r.N(50)*r.N(50))*step, seq: seq, a: int32(seq)}
			q.push(e)
			ref = append(ref, e)
		}
		slices.SortFunc(ref, func(x, y event) int {
			if x.before(&y) {
				return -1
			}
			return 1
		})
		for _, want := range ref {
			if got := q.pop(); got != want {
				t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
			}
		}
		if q.len() != 0 {
			t.Fatalf("seed %d: %d are left", seed, q.len())
		}
	}
}

func TestNothingAllocated(t *testing.T) {
	k := New()
	var h Kind
	h = k.Handle(func(a, b int32) { k.At(k.Now()+Time(a), h, a, b) })
	for i := range int32(100) {
		k.At(0, h, i+1, 0)
	}
	if n := testing.AllocsPerRun(1000, func() { _, _ = k.Step() }); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// TestTable: numbers are used again, and only those that are free.
func TestTable(t *testing.T) {
	var l Table[string]
	a, b := l.Put("a"), l.Put("b")
	if got := l.Take(a); got != "a" {
		t.Errorf("took %q, want a", got)
	}
	c, d := l.Put("c"), l.Put("d")
	if c != a || d == b || d == c {
		t.Errorf("numbers %d, %d, %d and %d", a, b, c, d)
	}
	if got := l.Take(b) + l.Take(c) + l.Take(d); got != "bcd" {
		t.Errorf("took %q, want bcd", got)
	}
}

func TestTimes(t *testing.T) {
	if Of(3*time.Microsecond) != 3*Microsecond || (3*Microsecond+999).Duration() != 3*time.Microsecond {
		t.Error("virtual and real time differ")
	}
	if Of(1<<63-1) != Never {
		t.Error("what is too long is not Never")
	}
}

// BenchmarkHold takes the first event and schedules another, as simulations do.
func BenchmarkHold(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("pending=%d", n), func(b *testing.B) {
			k := New()
			r := NewStream(1, 0, 0, 0)
			var h Kind
			h = k.Handle(func(x, y int32) { k.At(k.Now()+Time(r.Uint64()%1e6), h, x, y) })
			for range n {
				k.At(Time(r.N(1e6)), h, 0, 0)
			}
			for b.Loop() {
				_, _ = k.Step()
			}
		})
	}
}

// TestSoon: of each of many events, the steps are told in their order, and all before it is
// handled; of one that is scheduled late, at least nothing in vain.
func TestSoon(t *testing.T) {
	k := New()
	const events = 100
	var told [events + 1]int
	plain := k.Handle(func(a, b int32) {})
	hinted := k.Handle(func(a, b int32) {
		if a > int32(distances[0])+1 && told[a] != len(distances) {
			t.Errorf("event %d runs after %d steps", a, told[a])
		}
		told[a] = -1
	})
	steps := make([]func(a, b int32), len(distances))
	for i := range steps {
		steps[i] = func(a, b int32) {
			if told[a] != i && a > int32(distances[0])+1 || told[a] < 0 {
				t.Errorf("event %d: step %d after %d steps", a, i, told[a])
			}
			told[a] = i + 1
		}
	}
	k.Soon(hinted, steps...)
	for i := range events {
		k.At(Time(i), plain, 0, 0)
		k.At(Time(i), hinted, int32(i), 0)
	}
	k.At(50, plain, 0, 0)
	if err := k.Run(Never); err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if told[i] != -1 {
			t.Errorf("event %d did not run", i)
		}
	}
}

// TestSoonLast: fewer steps than there are distances are the nearest of them.
func TestSoonLast(t *testing.T) {
	k := New()
	var got []string
	say := func(what string) func(a, b int32) {
		return func(a, b int32) { got = append(got, fmt.Sprint(what, a)) }
	}
	kind := k.Handle(say("run "))
	k.Soon(kind, say("soon "))
	for i := range int32(5) {
		k.At(Time(i), kind, i, 0)
	}
	if err := k.Run(Never); err != nil {
		t.Fatal(err)
	}
	want := []string{"soon 3", "run 0", "soon 4", "run 1", "run 2", "run 3", "run 4"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
