package counts

import (
	"reflect"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
)

func TestCounts(t *testing.T) {
	var s be.Stats
	s.Doorbells, s.WindowStall, s.Memory.Register.Count = 3, time.Microsecond, 2
	before := Of(&s)
	s.Doorbells, s.RNR = 10, 1
	d := Since(Of(&s), before)
	for name, want := range map[string]int64{"doorbells": 7, "rnr": 1, "window_stall_ns": 0, "registrations": 0} {
		if got, ok := d[name]; !ok || got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
	sum := map[string]int64{}
	Add(sum, before)
	if !reflect.DeepEqual(sum, before) || before["window_stall_ns"] != 1000 {
		t.Errorf("sum = %v", sum)
	}
}
