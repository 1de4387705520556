package peak

import (
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var m Meter
	m.Start(start, 100, 1)
	for i, ops := range []int64{10, 40, 47, 49} { // after 10, 20, 30, 40 ms
		m.At(at(10*(i+1)), ops)
	}
	if want := 30 * 100 / 1e-2; m.Bps() < want*0.999 || m.Bps() > want*1.001 {
		t.Errorf("peak = %v, want %v: the second window", m.Bps(), want)
	}
	m.Start(start, 100, 1)
	m.At(at(1), 1000)
	m.At(at(20), 4)
	if m.Bps() != 0 {
		t.Errorf("peak of windows that are too short or have too few operations: %v", m.Bps())
	}
	if m.At(at(40), 8); m.Bps() != 8*100/4e-2 {
		t.Errorf("peak = %v, want that of 40 ms", m.Bps())
	}
	m.Start(start, 100, 1)
	if m.End(at(2), 3); m.Bps() != 3*100/2e-3 {
		t.Errorf("peak of a short run = %v, want its average", m.Bps())
	}
}
