package peak

import (
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	start := time.Unix(0, 0)
	var m Meter
	m.Start(start, 100)
	for i, ops := range []int64{10, 40, 45} { // after 1, 2, 3 ms
		m.At(start.Add(time.Duration(i+1)*time.Millisecond), ops)
	}
	m.End(start.Add(4*time.Millisecond), 46)
	if want := 30 * 100 / 1e-3; m.Bps() < want*0.999 || m.Bps() > want*1.001 {
		t.Errorf("peak = %v, want %v: the second window", m.Bps(), want)
	}
	m.Start(start, 100)
	m.At(start.Add(time.Microsecond), 3)
	m.End(start.Add(10*time.Microsecond), 5)
	if want := 5 * 100 / 1e-5; m.Bps() < want*0.999 || m.Bps() > want*1.001 {
		t.Errorf("peak of a short run = %v, want its average %v", m.Bps(), want)
	}
}
