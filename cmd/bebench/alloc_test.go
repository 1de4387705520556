package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

// TestAlloc runs the large workload in full: its checksum is the definition's.
func TestAlloc(t *testing.T) {
	r := bebench(context.Background(), "alloc", "-w", "large", "-t", "1,2", "-p", "edge", "--json", "-")
	r.want(t, exit.Done)
	var doc report.Document
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Rows) != 4 {
		t.Fatalf("%d rows, want heap and pool for 1 and 2 threads", len(doc.Rows))
	}
	for _, row := range doc.Rows {
		if row.Verified == nil || !*row.Verified || row.Ops == 0 || row.Counters["registered_bytes"] == 0 {
			t.Errorf("%+v", row)
		}
	}
	bebench(context.Background(), "alloc", "-i", "20000", "-t", "2").want(t, exit.Done,
		"small/page/threads=2", "large/page/threads=2", "heap", "pool", "registered/live")
}

// TestAllocTSV: the line has the 14 fields that the C harness prints.
func TestAllocTSV(t *testing.T) {
	r := bebench(context.Background(), "alloc", "--tsv", "-w", "large", "-t", "1", "-i", "1000", "-p", "edge", "--source", "pool", "-n", "bemalloc")
	r.want(t, exit.Done)
	fields := strings.Split(strings.TrimSuffix(r.out, "\n"), "\t")
	if len(fields) != 14 || fields[0] != "bemalloc" || fields[1] != "large" || fields[2] != "edge" || fields[4] != "1000" || !strings.HasPrefix(fields[11], "eca8d4a2995c63d3:") {
		t.Errorf("%q", fields)
	}
}

func TestAllocRefused(t *testing.T) {
	for _, c := range []struct {
		args, text string
	}{
		{"-w medium", "small or large"},
		{"-t 0", "1 to 64"},
		{"-t 65", "1 to 64"},
		{"-t two", "1 to 64"},
		{"-p all", "page or edge"},
		{"--source stack", "heap or pool"},
		{"--huge yes", "advise or off"},
		{"--tsv", "one workload"},
		{"--tsv -w small -t 1 --source heap --json -", "--json asks for more"},
		{"-t 1,8 -i 7", "each of 8 threads"},
		{"host", "no command"},
	} {
		bebench(context.Background(), append([]string{"alloc"}, strings.Fields(c.args)...)...).want(t, exit.Usage, c.text)
	}
}

// TestAllocGrowth: a row for each point, a chart, and at most one registration
// late on the plateau.
func TestAllocGrowth(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "growth.svg")
	r := bebench(context.Background(), "alloc", "growth", "-w", "large", "--live", "32", "--samples", "16", "--svg", svg, "--json", "-")
	r.want(t, exit.Done)
	var doc report.Document
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Rows) != 16 || doc.Rows[0].Op != "growth" || doc.Rows[15].Op != "plateau" {
		t.Fatalf("%d rows: %+v", len(doc.Rows), doc.Rows)
	}
	if a, b := doc.Rows[12].Counters["registrations"], doc.Rows[15].Counters["registrations"]; a == 0 || b > a+1 {
		t.Errorf("%d registrations, then %d", a, b)
	}
	chart, err := os.ReadFile(svg)
	if err != nil || !strings.HasPrefix(string(chart), "<svg") || strings.Count(string(chart), "<polyline") != 2 {
		t.Errorf("%v: %.200s", err, chart)
	}
	bebench(context.Background(), "alloc", "growth", "--live", "8", "--samples", "4").want(t, exit.Done, "plateau", "registered[MiB]")

	gone := filepath.Join(t.TempDir(), "gone", "growth.svg")
	if r := bebench(context.Background(), "alloc", "growth", "--svg", gone); r.code != exit.Failed || r.out != "" {
		t.Errorf("a chart that cannot be written: status %d, after %q, want %d at once", r.code, r.out, exit.Failed)
	}
	bebench(context.Background(), "alloc", "growth", "--svg", filepath.Dir(svg)).want(t, exit.Usage, "not a regular file")
	for _, c := range []struct{ args, text string }{
		{"-w medium", "small or large"}, {"--source stack", "heap or pool"}, {"--live 0", "--live"}, {"--samples 1", "--samples"},
	} {
		bebench(context.Background(), append([]string{"alloc", "growth"}, strings.Fields(c.args)...)...).want(t, exit.Usage, c.text)
	}
}
