// Package report holds the results of a benchmark and writes them: a table that
// reads like perftest's for people, and one JSON document for scripts.
package report

import (
	"time"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/cost"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/hist"
)

// Schema names the JSON format. Keys may be added to it; none changes its
// meaning, its unit or its name.
const Schema = "bebench/1"

// Document is the JSON result of one run. A field that does not apply is absent,
// never 0; so numbers are pointers wherever 0 can be a result.
type Document struct {
	Schema      string         `json:"schema"`
	Command     string         `json:"command"`           // "msg lat"
	Started     string         `json:"started,omitempty"` // RFC 3339; absent where time is virtual
	Args        map[string]any `json:"args"`              // the flags in effect
	Host        *Host          `json:"host,omitempty"`    // absent where it has no part in the result
	Device      *Device        `json:"device,omitempty"`
	Scenario    any            `json:"scenario,omitempty"` // of fabric: what was simulated, defaults included
	Rows        []Row          `json:"rows"`
	Ratios      []Ratio        `json:"ratios,omitempty"`
	Interrupted bool           `json:"interrupted,omitempty"` // the rows are partial
	Error       string         `json:"error,omitempty"`
}

// Device is the RDMA device that was measured.
type Device struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Port     int    `json:"port,omitempty"`
	MTUBytes int    `json:"mtu_bytes,omitempty"`
	GID      string `json:"gid,omitempty"`
}

// Row is one measurement.
type Row struct {
	Name          string           `json:"name"`            // what was measured: "be", "tcp", "write"
	Op            string           `json:"op,omitempty"`    // of several kinds in one run: "fetch", "push"
	Phase         string           `json:"phase,omitempty"` // of what happens in the run: "before", "during", "after"
	SizeBytes     int              `json:"size_bytes,omitempty"`
	Sockets       int              `json:"sockets,omitempty"`
	Outstanding   int              `json:"outstanding,omitempty"` // calls at once
	Ops           int64            `json:"ops"`
	Seconds       float64          `json:"seconds"`
	OpsPerS       *float64         `json:"ops_per_s,omitempty"`
	BytesPerS     *float64         `json:"bytes_per_s,omitempty"`
	GbitPerS      *float64         `json:"gbit_per_s,omitempty"`
	PeakGbitPerS  *float64         `json:"peak_gbit_per_s,omitempty"`
	LatencyUS     *Latency         `json:"latency_us,omitempty"`
	CPUNSPerOp    *float64         `json:"cpu_ns_per_op,omitempty"` // of this process, both ends if they share it; of fabric: of all hosts, for messages
	CPUNSPerByte  *float64         `json:"cpu_ns_per_byte,omitempty"`
	GoAllocsPerOp *float64         `json:"go_allocs_per_op,omitempty"`
	Verified      *bool            `json:"verified,omitempty"`
	Fairness      *float64         `json:"fairness,omitempty"` // Jain's index of the sockets' shares, by weight
	Counters      map[string]int64 `json:"counters,omitempty"`
	Engines       []Engine         `json:"engines,omitempty"` // the same of each engine
	Histogram     []Bar            `json:"histogram,omitempty"`
	Interrupted   bool             `json:"interrupted,omitempty"` // ended before its time
	Interval      bool             `json:"interval,omitempty"`    // covers a part of a run; only in a stream
	Point         *Point           `json:"point,omitempty"`       // of a sweep
	CDF           []float64        `json:"cdf_us,omitempty"`      // latency at each permille
	Series        *Series          `json:"series,omitempty"`      // over the time of the run
}

// Point is the value of the parameter that a sweep is of.
type Point struct {
	Of    string `json:"of"`
	Value int    `json:"value"`
}

// Series are values at equal distances of time.
type Series struct {
	PeriodUS    float64 `json:"period_us"`
	QueueBytes  []int64 `json:"queue_bytes"`  // the longest queue of the network
	Pauses      []int64 `json:"pauses"`       // begun since the last value
	GoodputMbps []int64 `json:"goodput_mbps"` // of all hosts, since the last value
}

// Engine is what one engine of ByteExpress counted in a measurement.
type Engine struct {
	Worker   int              `json:"worker"` // of ours that drives it
	Lane     int              `json:"lane"`   // of the two nodes
	QP       uint32           `json:"qp"`
	Sockets  int              `json:"sockets"`
	Counters map[string]int64 `json:"counters"`
}

// Latency is a distribution in microseconds.
type Latency struct {
	Min   float64  `json:"min"`
	P50   float64  `json:"p50"`
	Mean  float64  `json:"mean"`
	P99   float64  `json:"p99"`
	P999  float64  `json:"p999"`
	Max   float64  `json:"max"`
	Stdev *float64 `json:"stdev,omitempty"`
}

// Bar is one bar of a latency histogram, in microseconds.
type Bar struct {
	FromUS float64 `json:"from_us"`
	ToUS   float64 `json:"to_us"`
	Count  int64   `json:"count"`
}

// Ratio compares two rows of the same operation: below 1, the first is faster or
// cheaper, except in OpsPerS.
type Ratio struct {
	Op        string   `json:"op,omitempty"`
	SizeBytes int      `json:"size_bytes,omitempty"`
	Sockets   int      `json:"sockets,omitempty"`
	Calls     int      `json:"outstanding,omitempty"` // at once
	Of        string   `json:"of"`
	To        string   `json:"to"`
	Mean      *float64 `json:"mean,omitempty"`
	P50       *float64 `json:"p50,omitempty"`
	P99       *float64 `json:"p99,omitempty"`
	CPU       *float64 `json:"cpu,omitempty"`
	OpsPerS   *float64 `json:"ops_per_s,omitempty"`
	Point     *Point   `json:"point,omitempty"` // of a sweep of fabric
}

// New makes an empty document.
func New(command string, args map[string]any, now time.Time) *Document {
	host := ThisHost()
	return &Document{
		Schema: Schema, Command: command, Started: now.Format(time.RFC3339), Args: args, Host: &host, Rows: []Row{},
	}
}

// Sample is what a benchmark measured, before it is put into units.
type Sample struct {
	Name      string
	Op        string
	Phase     string
	SizeBytes int // of each message; 0: they differ
	Sockets   int // 0: does not apply
	// Outstanding is calls at once; 0: does not apply.
	Outstanding int
	Ops         int64 // operations finished
	Bytes       int64 // payload bytes of them; 0: does not apply
	Moved       int64 // payload bytes for which the CPU time was spent; 0: does not apply
	Wall        time.Duration
	Latency     *hist.Recorder // nil: not measured
	Halved      bool           // Latency has round trips, report half of them
	PeakBps     float64        // best bytes per second over a short time; 0: not measured
	Spent       *cost.Spent
	Verified    *bool
	Fairness    float64 // 0: not measured
	Counters    map[string]int64
	Engines     []Engine
	Bars        bool // with the histogram
	Stopped     bool // interrupted
}

// Row puts the sample into the units of the document.
func (s *Sample) Row() Row {
	r := Row{
		Name: s.Name, Op: s.Op, Phase: s.Phase, SizeBytes: s.SizeBytes, Sockets: s.Sockets, Outstanding: s.Outstanding, Ops: s.Ops, Seconds: s.Wall.Seconds(), Verified: s.Verified,
		Counters: s.Counters, Engines: s.Engines, Interrupted: s.Stopped,
	}
	if s.Fairness > 0 {
		r.Fairness = ptr(s.Fairness)
	}
	if sec := s.Wall.Seconds(); sec > 0 {
		r.OpsPerS = ptr(float64(s.Ops) / sec)
		if s.Bytes > 0 {
			r.BytesPerS = ptr(float64(s.Bytes) / sec)
			r.GbitPerS = ptr(float64(s.Bytes) * 8 / sec / 1e9)
		}
	}
	if s.PeakBps > 0 {
		r.PeakGbitPerS = ptr(s.PeakBps * 8 / 1e9)
	}
	if s.Spent != nil && s.Ops > 0 {
		if s.Spent.HasCPU {
			r.CPUNSPerOp = ptr(float64(s.Spent.CPU) / float64(s.Ops))
			if s.Moved > 0 {
				r.CPUNSPerByte = ptr(float64(s.Spent.CPU) / float64(s.Moved))
			}
		}
		r.GoAllocsPerOp = ptr(float64(s.Spent.Allocs) / float64(s.Ops))
	}
	if s.Latency != nil && s.Latency.Count() > 0 {
		r.LatencyUS, r.Histogram = s.latency()
	}
	return r
}

func (s *Sample) latency() (*Latency, []Bar) {
	scale := 1e-3 // ns to us
	if s.Halved {
		scale /= 2
	}
	h := s.Latency
	us := func(d time.Duration) float64 { return float64(d) * scale }
	l := &Latency{
		Min: us(h.Min()), P50: us(h.Percentile(50)), Mean: h.Mean() * scale, P99: us(h.Percentile(99)), P999: us(h.Percentile(99.9)),
		Max: us(h.Max()),
	}
	if h.Count() > 1 {
		l.Stdev = ptr(h.Stdev() * scale)
	}
	var bars []Bar
	if s.Bars {
		for _, b := range h.Bars() {
			bars = append(bars, Bar{us(b.From), us(b.To), b.Count})
		}
	}
	return l, bars
}

// Compare gives the ratios of a to b, nil where one of the two lacks the number.
func Compare(a, b *Row) Ratio {
	r := Ratio{
		Op: a.Op, SizeBytes: a.SizeBytes, Sockets: a.Sockets, Calls: a.Outstanding, Of: a.Name, To: b.Name, CPU: ratio(a.CPUNSPerOp, b.CPUNSPerOp), OpsPerS: ratio(a.OpsPerS, b.OpsPerS), Point: a.Point,
	}
	if a.LatencyUS != nil && b.LatencyUS != nil {
		r.Mean = ratio(&a.LatencyUS.Mean, &b.LatencyUS.Mean)
		r.P50 = ratio(&a.LatencyUS.P50, &b.LatencyUS.P50)
		r.P99 = ratio(&a.LatencyUS.P99, &b.LatencyUS.P99)
	}
	return r
}

func ratio(a, b *float64) *float64 {
	if a == nil || b == nil || *b == 0 {
		return nil
	}
	return ptr(*a / *b)
}

func ptr[T any](v T) *T { return &v }

// Sink takes what a test measures as it comes. Its functions may be nil.
type Sink struct {
	Sample   func(*Sample) error     // after each size; an error ends the run
	Progress func(done, total int64) // now and then, on another goroutine; total 0: not known
}
