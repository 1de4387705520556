package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// WriteCounters writes what the node and each of its engines counted in a row's
// measurement, but for counts of 0.
func WriteCounters(w io.Writer, r *Row) error {
	var b strings.Builder
	if r.Fairness != nil {
		fmt.Fprintf(&b, "  fairness (Jain) %.4f\n", *r.Fairness)
	}
	if r.Counters != nil {
		fmt.Fprintf(&b, "  node:%s\n", counters(r.Counters))
	}
	for i := range r.Engines {
		e := &r.Engines[i]
		fmt.Fprintf(&b, "  engine of QP %d (worker %d, lane %d, %d sockets):%s\n", e.QP, e.Worker, e.Lane, e.Sockets, counters(e.Counters))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// counters lists the counts by name, with what they say of doorbells first.
func counters(m map[string]int64) string {
	var b strings.Builder
	if n := m["doorbells"]; n > 0 {
		fmt.Fprintf(&b, " %.2f requests a doorbell,", float64(m["requests"])/float64(n))
	}
	if n := m["packed_messages"]; n > 0 {
		fmt.Fprintf(&b, " %.2f eager messages a SEND,", float64(m["eager_messages"])/float64(m["eager_messages"]-n))
	}
	if n := m["requests"]; n > 0 {
		fmt.Fprintf(&b, " %.1f%% signaled,", 100*float64(m["signaled"])/float64(n))
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		switch n := m[name]; {
		case strings.HasSuffix(name, "_ns") && n != 0:
			fmt.Fprintf(&b, " %s %v,", strings.TrimSuffix(name, "_ns"), time.Duration(n))
		case n != 0 || name == "copies":
			fmt.Fprintf(&b, " %s %d,", name, n)
		}
	}
	return strings.TrimSuffix(b.String(), ",")
}
