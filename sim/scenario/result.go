package scenario

import (
	"math/bits"
	"slices"

	"github.com/byteexpress/byteexpress/sim/des"
)

// Run is what came of one variant, at one value of the sweep if there is one. The
// same scenario and seed give the same Run on every machine.
type Run struct {
	Variant string  `json:"variant"`
	Point   *Point  `json:"point,omitempty"` // of the sweep
	Hosts   int     `json:"hosts"`
	Classes []Class `json:"classes"` // of messages
	// GoodputMbps is the payload of messages that arrived within the measured time at
	// all hosts together, in 10^6 bit/s.
	GoodputMbps int64 `json:"goodput_mbps"`
	// Series have a point each sample period, from the begin of the load on.
	Series   Series    `json:"series"`
	Counters []Counter `json:"counters"` // in a fixed order
	Events   uint64    `json:"events"`   // of the simulation
}

// Point is a value of a sweep.
type Point struct {
	Of    string `json:"of"`
	Value int    `json:"value"`
}

// Counter is a number that explains a result.
type Counter struct {
	Name  string `json:"name"`
	Value uint64 `json:"value"`
}

// Class is one kind of messages, or of what they make up: "push", "fetch". Times are
// virtual.
type Class struct {
	Name       string `json:"name"`
	Count      int    `json:"count"`            // that began after the warm-up and ended
	Unfinished int    `json:"unfinished"`       // that did not, or failed
	Failed     int    `json:"failed,omitempty"` // of those, that ended with an error
	Bytes      int64  `json:"bytes"`            // of payload
	// Ended and EndedBytes are of all that ended after the warm-up and before the end of
	// the load, whenever it began: rates are of these.
	Ended      int   `json:"ended"`
	EndedBytes int64 `json:"ended_bytes"`
	MinNS      int64 `json:"min_ns"`
	MeanNS     int64 `json:"mean_ns"`
	P50NS      int64 `json:"p50_ns"`
	P90NS      int64 `json:"p90_ns"`
	P99NS      int64 `json:"p99_ns"`
	P999NS     int64 `json:"p999_ns"`
	MaxNS      int64 `json:"max_ns"`
	// CDF has the latency at each permille in nanoseconds: CDF[500] is the median.
	CDF []int64 `json:"cdf_ns,omitempty"`
}

// Series are sampled; see Scenario.Sample.
type Series struct {
	PeriodNS int64 `json:"period_ns"`
	// QueueBytes is the longest data queue of any switch port at that moment.
	QueueBytes []int64 `json:"queue_bytes"`
	// Pauses are those that PFC began since the last sample.
	Pauses []int64 `json:"pauses"`
	// GoodputMbps is of all hosts, since the last sample.
	GoodputMbps []int64 `json:"goodput_mbps"`
}

func (r *Run) count(name string, v uint64) { r.Counters = append(r.Counters, Counter{name, v}) }

// Counter gives a counter by its name, 0 if there is none.
func (r *Run) Counter(name string) uint64 {
	for _, c := range r.Counters {
		if c.Name == name {
			return c.Value
		}
	}
	return 0
}

// Class gives a class by its name, nil if there is none.
func (r *Run) Class(name string) *Class {
	for i := range r.Classes {
		if r.Classes[i].Name == name {
			return &r.Classes[i]
		}
	}
	return nil
}

// tally collects the latencies of a class.
type tally struct {
	name   string
	ended  int   // within the measured time
	endedB int64 // bytes of those
	times  []des.Time
	open   int // began in the measured time and have not ended
	failed int
	bytes  int64
}

// class sorts them into a result.
func (t *tally) class() Class {
	c := Class{Name: t.name, Count: len(t.times), Unfinished: t.open + t.failed, Failed: t.failed, Bytes: t.bytes, Ended: t.ended, EndedBytes: t.endedB}
	if c.Count == 0 {
		return c
	}
	slices.Sort(t.times)
	var high, low uint64 // of the sum
	for _, v := range t.times {
		var carry uint64
		low, carry = bits.Add64(low, uint64(v), 0)
		high += carry
	}
	mean, _ := bits.Div64(high, low, uint64(c.Count))
	ns := func(permille int) int64 {
		return int64(t.times[min(c.Count*permille/1000, c.Count-1)] / des.Nanosecond)
	}
	c.MinNS, c.MeanNS, c.MaxNS = ns(0), int64(des.Time(mean)/des.Nanosecond), ns(1000)
	c.P50NS, c.P90NS, c.P99NS, c.P999NS = ns(500), ns(900), ns(990), ns(999)
	c.CDF = make([]int64, 1001)
	for i := range c.CDF {
		c.CDF[i] = ns(i)
	}
	return c
}
