package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/internal/lab/judge"
)

func TestComparison(t *testing.T) {
	var results []judge.Result
	for _, s := range comparison() {
		line := "client: ib_write: no row"
		for _, c := range comparedCases {
			for round := 1; round <= compareRounds; round++ {
				v := float64(10 * round)
				switch s.name {
				case c.name(round, ours):
					line = fmt.Sprintf(`client: {"schema":"bebench/1","row":{"bytes_per_s":%v,"latency_us":{"p50":%v}}}`, v*(1<<20), v)
				case c.name(round, theirs):
					line = fmt.Sprintf("client:  %-7d %d %8.2f %8.2f %8.2f", c.size, c.iters, v*3, v*2, v*2)
				}
			}
		}
		total := "client: 100.00    0.010000           5 "
		for _, c := range comparedCases {
			if s.name == c.name(counted, ours) || s.name == c.name(counted, theirs) {
				total += fmt.Sprint(3*c.iters) + "  2 total"
			}
		}
		results = append(results, judge.Result{Name: s.name, Output: []string{"server: row", "client: other", line, total}})
	}
	var b bytes.Buffer
	if err := writeComparison(&b, results); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != len(comparedCases)+1 {
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	// The medians are 30 and 60: half the latency, or half the bandwidth.
	for i, c := range comparedCases {
		want := "0.500"
		if strings.HasSuffix(c.test, "lat") {
			want = "2.000"
		}
		if f := strings.Join(strings.Fields(lines[i+1]), " "); !strings.Contains(f, " 30.00 60.00 "+want+" ") || !strings.HasSuffix(f, " 3.00 3.00") || !strings.HasPrefix(f, c.test) {
			t.Errorf("%q, want medians 30 and 60 and the ratio %s", lines[i+1], want)
		}
	}
	results[3].Output = []string{"client: nothing"}
	if err := writeComparison(&b, results); err == nil || !strings.Contains(err.Error(), results[3].Name) {
		t.Errorf("error %v, want one that names %q", err, results[3].Name)
	}
}
