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
	"github.com/byteexpress/byteexpress/sim/scenario"
)

func fabric(args string) result {
	return bebench(context.Background(), append([]string{"fabric"}, strings.Fields(args)...)...)
}

// TestFabric: the table, the document, the charts and the page of a run; all but what
// standard error says is the same the second time, to the byte.
func TestFabric(t *testing.T) {
	fabric("").want(t, exit.Done, scenario.Names()...)
	dir := t.TempDir()
	run := func(name string) (files map[string]string) {
		at := filepath.Join(dir, name)
		r := fabric("incast --hosts 9 --duration 500us --seed 3 --variants tcp-cubic-5,dcqcn,adaptive,get-static --progress always --json " + at + ".json --html " + at + ".html --svg " + at)
		r.want(t, exit.Done, "9 hosts, seed 3, 500us", "get-static", "99%[usec]", "message adaptive/tcp-cubic-5: mean", "events")
		files = map[string]string{"stdout": r.out}
		for _, f := range []string{at + ".json", at + ".html"} {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.Ext(f)] = string(b)
		}
		for _, chart := range []string{"cdf-message", "queue", "pauses", "goodput"} {
			b, err := os.ReadFile(filepath.Join(at, chart+".svg"))
			if err != nil || !strings.Contains(string(b), ">adaptive<") {
				t.Errorf("chart %s: %v\n%s", chart, err, b)
			}
			files[chart] = string(b)
			if !strings.Contains(files[".html"], string(b)) {
				t.Errorf("the page lacks chart %s", chart)
			}
		}
		return files
	}
	first, again := run("a"), run("b")
	for name, text := range first {
		if again[name] != text {
			t.Errorf("%s: the second run differs:\n%s\n%s", name, text, again[name])
		}
	}
	var doc report.Document
	if err := json.Unmarshal([]byte(first[".json"]), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != report.Schema || doc.Command != "fabric" || doc.Started != "" || doc.Host != nil || doc.Args["scenario"] != "incast" || len(doc.Rows) != 4 || len(doc.Ratios) != 3 {
		t.Errorf("document: %+v", doc)
	}
	for _, r := range doc.Rows {
		if r.Op != "message" || r.LatencyUS == nil || len(r.CDF) != 1001 || r.Series == nil || len(r.Series.QueueBytes) != 50 || r.Counters["events"] == 0 {
			t.Errorf("row %s: %d messages, %d points, %+v", r.Name, r.Ops, len(r.CDF), r.Series)
		}
	}
}

// TestFabricSweep: a file of the user's, with a sweep.
func TestFabricSweep(t *testing.T) {
	shown := fabric("incast --show")
	shown.want(t, exit.Done)
	file := filepath.Join(t.TempDir(), "mine.json")
	mine := strings.Replace(shown.out, `"name": "incast"`, `"name": "mine", "sweep": {"of": "senders", "values": [2, 5]}`, 1)
	if err := os.WriteFile(file, []byte(mine), 0o644); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	r := fabric(file + " --duration 200us --variants static,adaptive --json - --html " + page)
	r.want(t, exit.Done)
	var doc report.Document
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Rows) != 4 || doc.Rows[1].Point == nil || *doc.Rows[1].Point != (report.Point{Of: "senders", Value: 5}) || len(doc.Ratios) != 2 || doc.Ratios[1].Point == nil {
		t.Errorf("%+v", doc)
	}
	if b, err := os.ReadFile(page); err != nil || !strings.Contains(string(b), "p99 latency of each message") {
		t.Errorf("page: %v", err)
	}
}

func TestFabricRefused(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"version": 1, "nmae": "x"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	sweep := filepath.Join(t.TempDir(), "sweep.json")
	if err := os.WriteFile(sweep, []byte(strings.Replace(fabric("incast --show").out, `"name": "incast"`, `"name": "mine", "sweep": {"of": "senders", "values": [2]}`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	endless := filepath.Join(t.TempDir(), "endless.json")
	if err := os.WriteFile(endless, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(endless, maxFile+1); err != nil { // a hole
		t.Fatal(err)
	}
	for _, c := range []struct{ args, text string }{
		{endless, "no scenario has as many"},
		{"incest", `scenario "incest": want one of`},
		{"nowhere.json", "nowhere.json"},
		{bad, "nmae is not a key"},
		{"incast training", "at most one scenario"},
		{"incast --hosts 1", "hosts is 1, want 2"},
		{"incast --duration 2000", "duration is 2000s, want 1us to 1000s"},
		{"incast --variants static,quick", `variant "quick": want one of`},
		{"incast --variants=", `variant "": want one of`},
		{"incast --variants static,static", `"static" twice`},
		{sweep + " --hosts 9", "the scenario sweeps senders"},
		{"incast --html " + os.DevNull, "not a regular file"},
		{"--seed 3", "name one of failure-crash"},
		{"incast --progress often", "auto, always or never"},
	} {
		fabric(c.args).want(t, exit.Usage, c.text)
	}
	fabric("incast --hosts 5 --duration 100us --variants static --max-p99 1").want(t, exit.Threshold, "99th percentile")
	done, cancel := context.WithCancel(context.Background())
	cancel()
	bebench(done, "fabric", "incast").want(t, exit.Failed, "interrupted")
}
