package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Comparison is several measurements of the same messages over several transports, in
// rounds: in each, every transport had its turn.
type Comparison struct {
	of     string // the transport that the others are compared with
	points []point
}

// point is one measurement over one transport: a row of each round.
type point struct {
	op            string
	size, sockets int
	calls         int // outstanding
	name          string
	rounds        []Row
}

// NewComparison begins a comparison of one transport with others.
func NewComparison(of string) *Comparison { return &Comparison{of: of} }

// Add adds a row to a round. Rounds and their rows come in the same order each time.
func (c *Comparison) Add(r Row) {
	for i := range c.points {
		if p := &c.points[i]; p.op == r.Op && p.size == r.SizeBytes && p.sockets == r.Sockets && p.calls == r.Outstanding && p.name == r.Name {
			p.rounds = append(p.rounds, r)
			return
		}
	}
	c.points = append(c.points, point{r.Op, r.SizeBytes, r.Sockets, r.Outstanding, r.Name, []Row{r}})
}

// Rows gives for each measurement the row of its median round: by rate, or by the median
// latency where there is no rate of bytes.
func (c *Comparison) Rows() []Row {
	var rows []Row
	for i := range c.points {
		rows = append(rows, *c.points[i].median())
	}
	return rows
}

func (p *point) median() *Row {
	by := func(r *Row) float64 {
		switch {
		case r.BytesPerS != nil:
			return *r.BytesPerS
		case r.LatencyUS != nil:
			return r.LatencyUS.P50
		}
		return 0
	}
	order := slices.Clone(p.rounds)
	slices.SortFunc(order, func(a, b Row) int {
		switch x, y := by(&a), by(&b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return &order[len(order)/2]
}

// Ratios compares the one transport with each other, where both measured the same: each
// number is the median of the rounds' ratios, so that what troubles a whole round
// troubles none.
func (c *Comparison) Ratios() []Ratio {
	var all []Ratio
	for i := range c.points {
		p := &c.points[i]
		of := c.find(p.op, p.size, p.sockets, p.calls, c.of)
		if p.name == c.of || of == nil {
			continue
		}
		var rounds []Ratio
		for k := range min(len(of.rounds), len(p.rounds)) {
			rounds = append(rounds, Compare(&of.rounds[k], &p.rounds[k]))
		}
		if len(rounds) > 0 {
			all = append(all, medianRatio(rounds))
		}
	}
	return all
}

func medianRatio(rounds []Ratio) Ratio {
	r := rounds[0]
	for _, field := range []func(*Ratio) **float64{
		func(r *Ratio) **float64 { return &r.Mean }, func(r *Ratio) **float64 { return &r.P50 }, func(r *Ratio) **float64 { return &r.P99 },
		func(r *Ratio) **float64 { return &r.CPU }, func(r *Ratio) **float64 { return &r.OpsPerS },
	} {
		var values []float64
		for i := range rounds {
			if v := *field(&rounds[i]); v != nil {
				values = append(values, *v)
			}
		}
		if slices.Sort(values); len(values) > 0 {
			*field(&r) = ptr(values[len(values)/2])
		}
	}
	return r
}

func (c *Comparison) find(op string, size, sockets, calls int, name string) *point {
	for i := range c.points {
		if p := &c.points[i]; p.op == op && p.size == size && p.sockets == sockets && p.calls == calls && p.name == name {
			return p
		}
	}
	return nil
}

// Write writes a line for each size, number of sockets and transport: rate and CPU time
// from the bandwidth test, percentiles from the latency test, and behind each what the
// one transport has, divided by this.
func (c *Comparison) Write(w io.Writer) error {
	ratios := c.Ratios()
	var b strings.Builder
	fmt.Fprintf(&b, " %-10s %-7s %-10s %12s %8s %12s %8s %12s %8s %14s %8s\n",
		"#bytes", "sockets", "over", "MB/sec", c.of+"/it", "50%[usec]", c.of+"/it", "99%[usec]", c.of+"/it", "CPU/byte[nsec]", c.of+"/it")
	for i := range c.points {
		p := &c.points[i]
		if p.op != OpBandwidth {
			continue
		}
		bw, lat := p.median(), c.find(OpLatency, p.size, p.sockets, p.calls, p.name)
		p50, p99 := "-", "-"
		if lat != nil {
			if l := lat.median().LatencyUS; l != nil {
				p50, p99 = num(&l.P50, 1, 2), num(&l.P99, 1, 2)
			}
		}
		var rate, latency Ratio
		for _, r := range ratios {
			switch {
			case r.To != p.name || r.SizeBytes != p.size || r.Sockets != p.sockets:
			case r.Op == OpBandwidth:
				rate = r
			default:
				latency = r
			}
		}
		line := fmt.Sprintf(" %-10d %-7d %-10s %12s %8s %12s %8s %12s %8s %14s %8s", p.size, p.sockets, p.name,
			num(bw.BytesPerS, 1.0/mebi, 2), num(rate.OpsPerS, 1, 2), p50, num(latency.P50, 1, 2), p99, num(latency.P99, 1, 2),
			num(bw.CPUNSPerByte, 1, 4), num(rate.CPU, 1, 2))
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// The operations of a comparison.
const (
	OpBandwidth = "bw"
	OpLatency   = "lat"
)
