package cost

import "testing"

var sink []byte

func TestSpent(t *testing.T) {
	m := Start()
	x := uint64(1)
	var s Spent
	for s.CPU == 0 {
		for range 1 << 20 {
			x = x*6364136223846793005 + 1
		}
		if s = m.Since(); !s.HasCPU {
			t.Skip("the system does not tell the CPU time")
		}
	}
	m = Start()
	for range 1000 {
		sink = make([]byte, 100000)
	}
	if s = m.Since(); s.Allocs < 1000 {
		t.Errorf("%d allocations seen, want 1000 at least (%d)", s.Allocs, x)
	}
}

func TestAdd(t *testing.T) {
	var sum Spent
	for range 2 {
		sum = sum.Add(Spent{Wall: 1, CPU: 2, HasCPU: true, Allocs: 3})
	}
	if want := (Spent{2, 4, true, 6}); sum != want {
		t.Errorf("sum = %+v, want %+v", sum, want)
	}
}
