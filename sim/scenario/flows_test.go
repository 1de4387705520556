package scenario

import (
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
)

// TestFlows: flows begin and end when they say, send as many messages, and share a row by
// name; what one leaves out is the workload's, also in a sweep, and with another duration
// their times keep their shares.
func TestFlows(t *testing.T) {
	s, err := Parse([]byte(`{"version": 1, "name": "x", "duration": "1ms", "topology": {"kind": "single"}, "workload": {"kind": "flows", "size": {"fixed": 4000}, "flows": [
		{"name": "few", "from": 1, "to": 0, "messages": 7, "copies": 3}, {"name": "few", "from": 2, "to": 0, "messages": 1, "size": {"fixed": 100}},
		{"name": "late", "from": 3, "to": 1, "at": "500us", "until": "750us"}, {"name": "random", "from": 4, "to": 2, "rate_per_s": 100000}]},
		"sweep": {"of": "outstanding", "values": [1, 8]}, "variants": [{"name": "rc", "transport": "rc"}, "static", "tcp-cubic-5"]}`))
	if err != nil {
		t.Fatal(err)
	}
	late := map[string]map[int]int{}
	for _, r := range runAll(t, s) {
		few, random := r.Class("few"), r.Class("random")
		if few.Count != 22 || few.Bytes != 21*4000+100 || random.Count < 70 || random.Count > 130 || few.Unfinished+random.Unfinished > 0 {
			t.Errorf("%s: few %+v, random %d", r.Variant, few.Count, random.Count)
		}
		if late[r.Variant] == nil {
			late[r.Variant] = map[int]int{}
		}
		late[r.Variant][r.Point.Value] = r.Class("late").Count
	}
	for name, n := range late {
		if n[1] == 0 || n[8] < 3*n[1]/2 {
			t.Errorf("%s: %d messages with one under way, %d with eight", name, n[1], n[8])
		}
	}
	if err := s.SetDuration(2 * des.Millisecond); err != nil {
		t.Fatal(err)
	}
	if f := s.flow(2); f.At.time() != des.Millisecond || f.Until.time() != 1500*des.Microsecond || s.flow(0).Until != s.Duration {
		t.Errorf("with twice the duration: %+v", f)
	}
}
