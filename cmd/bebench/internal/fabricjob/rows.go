package fabricjob

import (
	"slices"
	"strings"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/scenario"
)

// Results are runs with their rows.
type Results struct {
	runs []*scenario.Run
	rows []report.Row
}

// Add takes a run and gives its rows: one for each class of messages. Counters and
// time series, which are the run's, are in the first.
func (r *Results) Add(s *scenario.Scenario, run *scenario.Run) []report.Row {
	var rows []report.Row
	seconds := float64((des.Time(s.Duration)-des.Time(s.Warmup))/des.Nanosecond) / 1e9
	for i := range run.Classes {
		c := &run.Classes[i]
		row := report.Row{
			Name: run.Variant, Op: c.Name, Ops: int64(c.Count), Seconds: seconds, Counters: map[string]int64{"unfinished": int64(c.Unfinished)},
		}
		if p := run.Point; p != nil {
			row.Point = &report.Point{Of: p.Of, Value: p.Value}
		}
		perS, bytesPerS := float64(c.Ended)/seconds, float64(c.EndedBytes)/seconds
		row.OpsPerS = &perS
		if c.EndedBytes > 0 {
			gbit := float64(bytesPerS*8) / 1e9
			row.BytesPerS, row.GbitPerS = &bytesPerS, &gbit
		}
		if c.Count > 0 {
			us := func(ns int64) float64 { return float64(ns) / 1e3 }
			row.LatencyUS = &report.Latency{Min: us(c.MinNS), P50: us(c.P50NS), Mean: us(c.MeanNS), P99: us(c.P99NS), P999: us(c.P999NS), Max: us(c.MaxNS)}
			for _, ns := range c.CDF {
				row.CDF = append(row.CDF, us(ns))
			}
		}
		if i == 0 {
			row.Series = &report.Series{
				PeriodUS: float64(run.Series.PeriodNS) / 1e3, QueueBytes: run.Series.QueueBytes, Pauses: run.Series.Pauses, GoodputMbps: run.Series.GoodputMbps,
			}
			for _, v := range run.Counters {
				row.Counters[v.Name] = int64(v.Value)
			}
			if cpu := run.Counter("cpu_ns"); cpu > 0 && c.Count > 0 {
				perOp := float64(cpu) / float64(c.Count)
				row.CPUNSPerOp = &perOp
			}
			row.Counters["events"] = int64(run.Events)
			row.Counters["hosts"] = int64(run.Hosts)
		}
		rows = append(rows, row)
	}
	r.runs = append(r.runs, run)
	r.rows = append(r.rows, rows...)
	return rows
}

// baseline is the variant that others are compared with: a tuned TCP if it was run,
// or the first.
func (r *Results) baseline() string {
	for _, row := range r.rows {
		if strings.HasPrefix(row.Name, "tcp-cubic-5") {
			return row.Name
		}
	}
	if len(r.rows) == 0 {
		return ""
	}
	return r.rows[0].Name
}

// Ratios compare every row with that of the baseline.
func (r *Results) Ratios() (ratios []report.Ratio) {
	base := r.baseline()
	for i := range r.rows {
		a := &r.rows[i]
		k := slices.IndexFunc(r.rows, func(b report.Row) bool {
			return b.Name == base && b.Op == a.Op && (a.Point == nil || *a.Point == *b.Point)
		})
		if a.Name != base && k >= 0 && a.LatencyUS != nil {
			ratios = append(ratios, report.Compare(a, &r.rows[k]))
		}
	}
	return ratios
}
