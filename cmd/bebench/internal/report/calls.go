package report

import (
	"fmt"
	"io"
	"strings"
)

// WriteCalls writes a line for each size, number of outstanding calls and transport:
// the median round, and behind rate, latencies and CPU time what the one transport
// has, divided by this.
func (c *Comparison) WriteCalls(w io.Writer) error {
	ratios := c.Ratios()
	var b strings.Builder
	per := c.of + "/it"
	fmt.Fprintf(&b, " %-7s %-9s %-12s %-10s %12s %7s %12s %7s %12s %7s %13s %7s %10s\n",
		"op", "#bytes", "outstanding", "over", "ops/sec", per, "50%[usec]", per, "99%[usec]", per, "CPU/op[usec]", per, "allocs/op")
	for i := range c.points {
		p := &c.points[i]
		r := p.median()
		var ratio Ratio
		for _, x := range ratios {
			if x.To == p.name && x.Op == p.op && x.SizeBytes == p.size && x.Calls == p.calls {
				ratio = x
			}
		}
		p50, p99 := "-", "-"
		if l := r.LatencyUS; l != nil {
			p50, p99 = num(&l.P50, 1, 2), num(&l.P99, 1, 2)
		}
		line := fmt.Sprintf(" %-7s %-9d %-12d %-10s %12s %7s %12s %7s %12s %7s %13s %7s %10s", p.op, p.size, p.calls, p.name,
			num(r.OpsPerS, 1, 0), num(ratio.OpsPerS, 1, 2), p50, num(ratio.P50, 1, 2), p99, num(ratio.P99, 1, 2),
			num(r.CPUNSPerOp, 1e-3, 2), num(ratio.CPU, 1, 2), num(r.GoAllocsPerOp, 1, 2))
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
