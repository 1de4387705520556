package report

import (
	"fmt"
	"io"
)

// FabricTable is for simulated networks: a row for each class of messages of each
// variant.
func FabricTable(w io.Writer) *Table {
	counter := func(name string, scale float64, digits int) func(*Row) string {
		return func(r *Row) string {
			v, ok := r.Counters[name]
			if !ok {
				return "-"
			}
			return num(ptr(float64(v)), scale, digits)
		}
	}
	return &Table{w, []column{
		{"variant     ", func(r *Row) string { return r.Name }},
		{"class      ", func(r *Row) string { return r.Op }},
		{"at      ", func(r *Row) string {
			if r.Point == nil {
				return "-"
			}
			return fmt.Sprint(r.Point.Value)
		}},
		{"#messages", ops},
		{"mean[usec]", lat(func(l *Latency) float64 { return l.Mean })},
		{"50%[usec]", lat(func(l *Latency) float64 { return l.P50 })},
		{"99%[usec]", lat(func(l *Latency) float64 { return l.P99 })},
		{"99.9%[usec]", lat(func(l *Latency) float64 { return l.P999 })},
		{"Gb/sec ", func(r *Row) string { return num(r.GbitPerS, 1, 2) }},
		{"Mmsg/sec", func(r *Row) string { return num(r.OpsPerS, 1e-6, 3) }},
		{"pauses", counter("pauses", 1, 0)},
		{"queue[KB]", counter("peak_queue_bytes", 1e-3, 1)},
		{"drops", counter("dropped_packets", 1, 0)},
		{"unfinished", counter("unfinished", 1, 0)},
	}}
}
