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
	s.InFlight, s.Registered.Writable = 5, 4096
	levels := Levels(&s)
	Peak(levels, map[string]int64{"queue_in_flight": 3, "queue_held": 2})
	if levels["queue_in_flight"] != 5 || levels["queue_held"] != 2 || levels["registered_writable_bytes"] != 4096 {
		t.Errorf("peaks %v", levels)
	}
	sum := map[string]int64{}
	Add(sum, before)
	if !reflect.DeepEqual(sum, before) || before["window_stall_ns"] != 1000 {
		t.Errorf("sum = %v", sum)
	}
}
