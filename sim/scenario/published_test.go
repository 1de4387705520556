//go:build !race

package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// Published experiments that the specification's table does not have, each as a file that
// a reader of the paper would write; docs/fabric.md has the figures. What was expected
// was written down before they ran.

// What files begin with: mark40 has the switches and the marking of the DCQCN paper (Zhu
// et al., SIGCOMM 2015), roce40 also its MTU.
const (
	head   = `"version": 1, "name": "x", "drain": "10ms"`
	mark40 = head + `, "switch": {"buffer_bytes": 12000000, "ecn_kmin_bytes": 5000, "ecn_kmax_bytes": 200000, "ecn_pmax": 0.01, "ecn_gbps": 40}`
	roce40 = mark40 + `, "nic": {"mtu_bytes": 1024}`
)

// mtu1024 is the share of a link that is payload with that MTU.
const mtu1024 = 1024. / 1106

// outcome is a run with the time that was measured.
type outcome struct {
	*Run
	ns float64
}

// experiment runs a file, and gives what came of its variants.
func experiment(t testing.TB, file string) map[string]outcome {
	t.Helper()
	s, err := Parse([]byte("{" + file + "}"))
	if err != nil {
		t.Fatalf("%v: %s", err, file)
	}
	runs := map[string]outcome{}
	for _, j := range s.Jobs() {
		r, err := j.Run(nil)
		if err != nil {
			t.Fatal(err)
		}
		runs[r.Variant] = outcome{r, float64(s.Duration-s.Warmup) / 1000}
	}
	return runs
}

// gbps is the payload of a class.
func (o outcome) gbps(class string) float64 { return float64(o.Class(class).EndedBytes) * 8 / o.ns }

// queue is the longest queue at the given share of the last part of the samples, and how
// far it is spread: its standard deviation over its mean.
func (o outcome) queue(from, share float64) (bytes, mean, spread float64) {
	q := slices.Clone(o.Series.QueueBytes[int(from*float64(len(o.Series.QueueBytes))):])
	slices.Sort(q)
	sum, squares := 0.0, 0.0
	for _, v := range q {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	n := float64(len(q))
	mean = sum / n
	return float64(q[int(share*(n-1))]), mean, math.Sqrt(max(squares/n-mean*mean, 0)) / mean
}

// holds compares a figure with a published one.
func holds(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	t.Logf("%s: %.4g, published %.4g", what, got, want)
	if got < want*(1-share) || got > want*(1+share) {
		t.Errorf("%s: %.4g, want %.4g within %.0f %%", what, got, want, 100*share)
	}
}

func jain(v ...float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range v {
		sum += x
		squares += x * x
	}
	return sum * sum / float64(len(v)) / squares
}

// flowsTo lists a flow to host 0 from each of n others.
func flowsTo(n int, more string) string {
	return flowsOf(n, func(i int) string { return fmt.Sprintf(`{"from": %d, "to": 0%s}`, i+1, more) })
}

func flowsOf(n int, flow func(i int) string) string {
	var list []string
	for i := range n {
		list = append(list, flow(i))
	}
	return strings.Join(list, ", ")
}
