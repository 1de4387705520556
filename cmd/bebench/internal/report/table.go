package report

import (
	"fmt"
	"io"
	"strings"
)

const mebi = 1 << 20 // perftest's MB/sec counts 2^20 bytes

// column is one column of a table: its title gives the width.
type column struct {
	title string
	cell  func(*Row) string
}

// Table writes rows below one another as they come.
type Table struct {
	w    io.Writer
	cols []column
}

// BandwidthTable has the columns of perftest's bandwidth tests, then percentiles
// of the time from posting a request to its completion.
func BandwidthTable(w io.Writer, gbits bool) *Table {
	peak, avg := "BW peak[MB/sec]", "BW average[MB/sec]"
	scale := 1e9 / 8 / mebi
	if gbits {
		peak, avg, scale = "BW peak[Gb/sec]", "BW average[Gb/sec]", 1
	}
	return &Table{w, append([]column{
		{"#bytes    ", size}, {"#iterations", ops},
		{peak, func(r *Row) string { return num(r.PeakGbitPerS, scale, 2) }},
		{avg, func(r *Row) string { return num(r.GbitPerS, scale, 2) }},
		{"MsgRate[Mpps]", func(r *Row) string { return num(r.OpsPerS, 1e-6, 6) }},
		{"50% percentile[usec]", lat(func(l *Latency) float64 { return l.P50 })},
		{"99% percentile[usec]", lat(func(l *Latency) float64 { return l.P99 })},
		{"99.9% percentile[usec]", lat(func(l *Latency) float64 { return l.P999 })},
	}, costs...)}
}

// LatencyTable has the columns of perftest's latency tests.
func LatencyTable(w io.Writer) *Table {
	return &Table{w, append([]column{
		{"#bytes    ", size}, {"#iterations", ops},
		{"t_min[usec]", lat(func(l *Latency) float64 { return l.Min })},
		{"t_max[usec]", lat(func(l *Latency) float64 { return l.Max })},
		{"t_typical[usec]", lat(func(l *Latency) float64 { return l.P50 })},
		{"t_avg[usec]", lat(func(l *Latency) float64 { return l.Mean })},
		{"t_stdev[usec]", stdev},
		{"99% percentile[usec]", lat(func(l *Latency) float64 { return l.P99 })},
		{"99.9% percentile[usec]", lat(func(l *Latency) float64 { return l.P999 })},
	}, costs...)}
}

// AllocTable is for the allocator's workloads: a row for each workload, thread
// count and source.
func AllocTable(w io.Writer) *Table {
	ratio := func(r *Row) string {
		live, registered := float64(r.Counters["live_bytes"]), float64(r.Counters["registered_bytes"])
		return num(ptr(registered/live), 1, 2)
	}
	return &Table{w, []column{
		{"workload               ", func(r *Row) string { return r.Op }},
		{"from  ", func(r *Row) string { return r.Name }},
		{"#ops      ", ops},
		{"Mops/sec", func(r *Row) string { return num(r.OpsPerS, 1e-6, 3) }},
		{"CPU[nsec/op]", func(r *Row) string { return num(r.CPUNSPerOp, 1, 1) }},
		{"registered/live", ratio},
		{"stalls", func(r *Row) string { return fmt.Sprint(r.Counters["stalls"]) }},
	}}
}

// GrowthTable is for the run of a live set that grows and then stays: a row for each
// point.
func GrowthTable(w io.Writer) *Table {
	mib := func(name string) func(*Row) string {
		return func(r *Row) string { return num(ptr(float64(r.Counters[name])), 1.0/mebi, 1) }
	}
	return &Table{w, []column{
		{"phase  ", func(r *Row) string { return r.Op }},
		{"#ops      ", ops},
		{"live[MiB]", mib("live_bytes")},
		{"in use[MiB]", mib("in_use_bytes")},
		{"registered[MiB]", mib("registered_bytes")},
		{"registrations", func(r *Row) string { return fmt.Sprint(r.Counters["registrations"]) }},
	}}
}

// JobTable is for the parameter-server job: a row for each operation and
// transport.
func JobTable(w io.Writer) *Table {
	return &Table{w, append([]column{
		{"op   ", func(r *Row) string { return r.Op }},
		{"over", func(r *Row) string { return r.Name }},
		{"#requests", ops},
		{"t_avg[usec]", lat(func(l *Latency) float64 { return l.Mean })},
		{"t_typical[usec]", lat(func(l *Latency) float64 { return l.P50 })},
		{"99%[usec]", lat(func(l *Latency) float64 { return l.P99 })},
		{"99.9%[usec]", lat(func(l *Latency) float64 { return l.P999 })},
		{"ops/sec", func(r *Row) string { return num(r.OpsPerS, 1, 0) }},
		{"MB/sec", func(r *Row) string { return num(r.GbitPerS, 1e9/8/mebi, 1) }},
	}, costs...)}
}

var costs = []column{
	{"CPU/op[usec]", func(r *Row) string { return num(r.CPUNSPerOp, 1e-3, 2) }},
	{"allocs/op", func(r *Row) string { return num(r.GoAllocsPerOp, 1, 2) }},
	{"verified", func(r *Row) string {
		switch {
		case r.Verified == nil:
			return "-"
		case *r.Verified:
			return "yes"
		}
		return "NO"
	}},
}

func size(r *Row) string { return fmt.Sprint(r.SizeBytes) }

func ops(r *Row) string { return fmt.Sprint(r.Ops) }

func stdev(r *Row) string {
	if r.LatencyUS == nil {
		return "-"
	}
	return num(r.LatencyUS.Stdev, 1, 2)
}

func lat(get func(*Latency) float64) func(*Row) string {
	return func(r *Row) string {
		if r.LatencyUS == nil {
			return "-"
		}
		v := get(r.LatencyUS)
		return num(&v, 1, 2)
	}
}

func num(v *float64, scale float64, digits int) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, *v*scale)
}

// Rule is the line that separates the parts of the output.
func Rule(w io.Writer) error {
	_, err := fmt.Fprintln(w, strings.Repeat("-", 87))
	return err
}

// Head writes the titles.
func (t *Table) Head() error {
	var b strings.Builder
	for _, c := range t.cols {
		b.WriteString(" " + c.title)
	}
	_, err := fmt.Fprintln(t.w, b.String())
	return err
}

// Row writes one row. A partial one is marked.
func (t *Table) Row(r *Row) error {
	var b strings.Builder
	for _, c := range t.cols {
		fmt.Fprintf(&b, " %-*s", len(c.title), c.cell(r))
	}
	line := strings.TrimRight(b.String(), " ")
	if r.Interrupted {
		line += "  (partial: interrupted)"
	}
	_, err := fmt.Fprintln(t.w, line)
	return err
}

// WriteBars writes a row's latency histogram.
func WriteBars(w io.Writer, r *Row) error {
	if len(r.Histogram) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w, " from[usec]      to[usec]        count"); err != nil {
		return err
	}
	for _, b := range r.Histogram {
		if _, err := fmt.Fprintf(w, " %-15.3f %-15.3f %d\n", b.FromUS, b.ToUS, b.Count); err != nil {
			return err
		}
	}
	return nil
}

// WriteRatio writes one comparison.
func WriteRatio(w io.Writer, r *Ratio) error {
	at := ""
	if r.Point != nil {
		at = fmt.Sprintf(" at %s %d", r.Point.Of, r.Point.Value)
	}
	_, err := fmt.Fprintf(w, " %-6s %s/%s%s: mean %s, 99%% %s, CPU per op %s, ops/sec %s\n",
		r.Op, r.Of, r.To, at, num(r.Mean, 1, 3), num(r.P99, 1, 3), num(r.CPU, 1, 3), num(r.OpsPerS, 1, 2))
	return err
}
