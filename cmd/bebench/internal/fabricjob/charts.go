package fabricjob

import (
	"fmt"
	"slices"
	"strings"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/sim/scenario"
)

// Chart is a plot with the name of its file, without the ending.
type Chart struct {
	File string
	Plot report.Plot
}

// Charts draws the runs: without a sweep latency distributions, queue and pauses over
// time; with one throughput, latency and pauses over its values.
func (r *Results) Charts(s *scenario.Scenario) []Chart {
	if s.Sweep != nil {
		return r.sweepCharts(s)
	}
	var charts []Chart
	for _, class := range r.classes() {
		c := Chart{"cdf-" + class, report.Plot{Title: s.Name + ": latency of each " + class, X: "us", Y: "% of them"}}
		for _, run := range r.runs {
			if k := run.Class(class); k != nil && k.Count > 0 {
				c.Plot.Lines = append(c.Plot.Lines, cdf(run.Variant, k.CDF))
			}
		}
		charts = append(charts, c)
	}
	series := func(file, title, y string, scale float64, of func(*scenario.Series) []int64) {
		c := Chart{file, report.Plot{Title: s.Name + ": " + title, X: "ms of virtual time", Y: y}}
		for _, run := range r.runs {
			c.Plot.Lines = append(c.Plot.Lines, overTime(run, of(&run.Series), scale))
		}
		charts = append(charts, c)
	}
	series("queue", "longest queue of a switch", "KB", 1e-3, func(t *scenario.Series) []int64 { return t.QueueBytes })
	series("pauses", "pauses by PFC, since the start", "pauses", 1, func(t *scenario.Series) []int64 { return sums(t.Pauses) })
	series("goodput", "payload that arrived", "Gb/s", 1e-3, func(t *scenario.Series) []int64 { return smooth(t.GoodputMbps) })
	return charts
}

// classes are all that any run has.
func (r *Results) classes() (names []string) {
	for _, run := range r.runs {
		for _, c := range run.Classes {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

func cdf(name string, ns []int64) report.Line {
	l := report.Line{Name: name}
	for i, v := range ns {
		l.Points = append(l.Points, [2]float64{float64(v) / 1e3, float64(i) / 10})
	}
	return l
}

// mostPoints is how many points of a series are drawn: of more, the largest of
// neighbours.
const mostPoints = 500

func overTime(run *scenario.Run, values []int64, scale float64) report.Line {
	l := report.Line{Name: run.Variant}
	step := (len(values) + mostPoints - 1) / mostPoints
	for i := 0; i < len(values); i += step {
		at, v := min(i+step, len(values)), slices.Max(values[i:min(i+step, len(values))])
		l.Points = append(l.Points, [2]float64{float64(int64(at)*run.Series.PeriodNS) / 1e6, float64(v) * scale})
	}
	return l
}

func sums(values []int64) []int64 {
	out, sum := make([]int64, len(values)), int64(0)
	for i, v := range values {
		sum += v
		out[i] = sum
	}
	return out
}

// smooth is the mean of ten neighbours.
func smooth(values []int64) []int64 {
	out := make([]int64, len(values))
	for i := range values {
		part := values[max(i-9, 0) : i+1]
		sum := int64(0)
		for _, v := range part {
			sum += v
		}
		out[i] = sum / int64(len(part))
	}
	return out
}

// sweepCharts have a line for each variant over the values of the sweep.
func (r *Results) sweepCharts(s *scenario.Scenario) (charts []Chart) {
	logX := len(s.Sweep.Values) > 1 && slices.Max(s.Sweep.Values) >= 50*max(slices.Min(s.Sweep.Values), 1)
	add := func(file, title, y string, of func(*scenario.Run) (float64, bool)) {
		c := Chart{file, report.Plot{Title: s.Name + ": " + title, X: strings.ReplaceAll(s.Sweep.Of, "_", " "), Y: y, LogX: logX}}
		for _, run := range r.runs {
			v, ok := of(run)
			if !ok {
				continue
			}
			i := slices.IndexFunc(c.Plot.Lines, func(l report.Line) bool { return l.Name == run.Variant })
			if i < 0 {
				i = len(c.Plot.Lines)
				c.Plot.Lines = append(c.Plot.Lines, report.Line{Name: run.Variant})
			}
			c.Plot.Lines[i].Points = append(c.Plot.Lines[i].Points, [2]float64{float64(run.Point.Value), v})
		}
		charts = append(charts, c)
	}
	add("throughput", "payload that arrived", "Gb/s", func(run *scenario.Run) (float64, bool) { return float64(run.GoodputMbps) / 1e3, true })
	seconds := float64(s.Duration-s.Warmup) / 1e12
	for _, class := range r.classes() {
		add("rate-"+class, "rate of each "+class, "million/s", func(run *scenario.Run) (float64, bool) {
			k := run.Class(class)
			return float64(k.Ended) / seconds / 1e6, true
		})
		for _, q := range []struct {
			name string
			of   func(*scenario.Class) int64
		}{{"mean", func(k *scenario.Class) int64 { return k.MeanNS }}, {"p99", func(k *scenario.Class) int64 { return k.P99NS }}} {
			add(fmt.Sprintf("%s-%s", q.name, class), q.name+" latency of each "+class, "us", func(run *scenario.Run) (float64, bool) {
				k := run.Class(class)
				return float64(q.of(k)) / 1e3, k.Count > 0
			})
		}
	}
	add("pauses", "pauses by PFC", "pauses", func(run *scenario.Run) (float64, bool) { return float64(run.Counter("pauses")), true })
	add("queue", "longest queue of a switch", "KB", func(run *scenario.Run) (float64, bool) {
		return float64(run.Counter("peak_queue_bytes")) / 1e3, true
	})
	return charts
}

// Page is an HTML page of results and charts.
func (r *Results) Page(s *scenario.Scenario, charts []Chart) *report.Page {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%d hosts, seed %d, %v of load in virtual time\n\n", s.About, s.Topology.Hosts, s.Seed, s.Duration)
	t := report.FabricTable(&b)
	_ = t.Head() // a builder takes all
	for i := range r.rows {
		_ = t.Row(&r.rows[i])
	}
	b.WriteString("\n")
	for _, ratio := range r.Ratios() {
		_ = report.WriteRatio(&b, &ratio)
	}
	p := &report.Page{Title: "bebench fabric " + s.Name, Text: b.String()}
	for _, c := range charts {
		p.Plots = append(p.Plots, c.Plot)
	}
	return p
}
