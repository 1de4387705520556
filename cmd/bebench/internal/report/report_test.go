package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/cost"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/hist"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), -rewrite to accept:\n%s", name, diff)
	}
}

// full is a sample with everything measured.
func full() *Sample {
	h := hist.New()
	for i := range 1000 {
		h.Record(time.Duration(i+1) * time.Microsecond)
	}
	return &Sample{
		Name: "write", SizeBytes: 65536, Ops: 1000, Bytes: 65536000, Wall: time.Second / 2, Latency: h, PeakBps: 2e8,
		Spent: &cost.Spent{CPU: time.Second / 4, HasCPU: true, Allocs: 250}, Verified: ptr(true), Counters: map[string]int64{"rnr": 0},
	}
}

func TestTables(t *testing.T) {
	s := full()
	for _, tt := range []struct {
		name   string
		table  func(*bytes.Buffer) *Table
		halved bool
	}{
		{"bandwidth.txt", func(b *bytes.Buffer) *Table { return BandwidthTable(b, false) }, false},
		{"bandwidth_gbits.txt", func(b *bytes.Buffer) *Table { return BandwidthTable(b, true) }, false},
		{"latency.txt", func(b *bytes.Buffer) *Table { return LatencyTable(b) }, true},
		{"job.txt", func(b *bytes.Buffer) *Table { return JobTable(b) }, false},
	} {
		var b bytes.Buffer
		table := tt.table(&b)
		s.Halved = tt.halved
		measured := s.Row()
		measured.Op = "fetch"
		bare := (&Sample{Name: "tcp", Op: "push", SizeBytes: 8, Ops: 3, Stopped: true}).Row()
		for _, err := range []error{Rule(&b), table.Head(), table.Row(&measured), table.Row(&bare)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		golden(t, tt.name, b.String())
	}
}

func TestRowUnits(t *testing.T) {
	s := full()
	s.Halved = true
	r := s.Row()
	want := Row{
		Name: "write", SizeBytes: 65536, Ops: 1000, Seconds: 0.5, OpsPerS: ptr(2000.0), BytesPerS: ptr(131072000.0), GbitPerS: ptr(1.048576),
		PeakGbitPerS: ptr(1.6), CPUNSPerOp: ptr(250000.0), GoAllocsPerOp: ptr(0.25), Verified: ptr(true), Counters: map[string]int64{"rnr": 0},
		LatencyUS: &Latency{Min: 0.5, P50: 250, Mean: 250.25, P99: 495, P999: 499.5, Max: 500, Stdev: ptr(144.33756729740643)},
	}
	near := cmp.Comparer(func(a, b float64) bool { return a == b || (a-b)/(a+b) < 1e-3 && (b-a)/(a+b) < 1e-3 })
	if diff := cmp.Diff(want, r, near); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

// TestAbsentNotZero checks the rule of the schema: what was not measured has no
// key, and a measured 0 has one.
func TestAbsentNotZero(t *testing.T) {
	d := New("write bw", map[string]any{"size": 8}, time.Unix(0, 0).UTC())
	d.Rows = append(d.Rows, (&Sample{Name: "write", Ops: 1}).Row())
	zero := (&Sample{Name: "write", Ops: 1, Wall: 1, Spent: &cost.Spent{HasCPU: true}, Verified: ptr(false), Counters: map[string]int64{"rnr": 0}}).Row()
	d.Rows = append(d.Rows, zero)
	var b bytes.Buffer
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	var got struct{ Rows []map[string]any }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"name": "write", "ops": 1.0, "seconds": 0.0}, got.Rows[0]); diff != "" {
		t.Errorf("bare row (-want +got):\n%s", diff)
	}
	for _, key := range []string{"cpu_ns_per_op", "go_allocs_per_op", "verified", "counters"} {
		if _, ok := got.Rows[1][key]; !ok {
			t.Errorf("measured 0 of %q is absent", key)
		}
	}
	for _, key := range []string{"device", "ratios", "error", "interrupted"} {
		if strings.Contains(b.String(), `"`+key+`"`) {
			t.Errorf("%q is present and does not apply", key)
		}
	}
}

func TestSaveLeavesAValidDocumentAtAllTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	d := New("msg lat", nil, time.Now())
	for i := range 3 {
		if err := d.Save(path); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var got Document
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&got); err != nil || got.Schema != Schema || got.Rows == nil || len(got.Rows) != i {
			t.Errorf("after %d rows: %v, %s", i, err, b)
		}
		d.Rows = append(d.Rows, full().Row())
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("files left: %v, %v", entries, err)
	}
	if err := d.Save(filepath.Join(path, "no", "such")); err == nil {
		t.Error("no error for a directory that is not there")
	}
}

func TestStreamIsOneLineARow(t *testing.T) {
	d := New("ps", nil, time.Now())
	r := full().Row()
	var b bytes.Buffer
	for range 2 {
		if err := d.Stream(&b, &r); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2 || !json.Valid([]byte(lines[0])) {
		t.Errorf("stream = %q", b.String())
	}
}

func TestStreamLineCanBeReadAlone(t *testing.T) {
	d := New("ps", nil, time.Now())
	d.Device = &Device{Name: "rxe0", Provider: "rxe"}
	d.Ratios = []Ratio{{Of: "be", To: "tcp"}, {Of: "be", To: "be"}}
	r := full().Row()
	var b bytes.Buffer
	if err := d.Stream(&b, &r); err != nil {
		t.Fatal(err)
	}
	if err := d.StreamRatios(&b); err != nil {
		t.Fatal(err)
	}
	var got []streamed
	for dec := json.NewDecoder(&b); dec.More(); {
		var s streamed
		if err := dec.Decode(&s); err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
	}
	if len(got) != 3 || got[0].Row == nil || got[1].Ratio == nil || got[1].Row != nil || got[2].Ratio.To != "be" {
		t.Fatalf("stream of a row and two ratios: %+v", got)
	}
	for _, s := range got {
		if s.Schema != Schema || s.Command != "ps" || s.Host == nil || *s.Host != *d.Host || s.Device == nil || s.Device.Name != "rxe0" {
			t.Errorf("line %+v lacks what it needs", s)
		}
	}
}

func TestCompare(t *testing.T) {
	a, b := full().Row(), full().Row()
	a.Name, b.Name = "be", "tcp"
	b.LatencyUS.Mean *= 4
	b.CPUNSPerOp = nil
	want := Ratio{SizeBytes: 65536, Of: "be", To: "tcp", Mean: ptr(0.25), P50: ptr(1.0), P99: ptr(1.0), OpsPerS: ptr(1.0)}
	if diff := cmp.Diff(want, Compare(&a, &b)); diff != "" {
		t.Errorf("ratio (-want +got):\n%s", diff)
	}
}

// TestComparison: ratios are those of neighbours in a round, rows those of the median
// round.
func TestComparison(t *testing.T) {
	c := NewComparison("be")
	for _, round := range []struct{ be, tcp, p50 float64 }{{100, 50, 3}, {10, 1, 9}, {300, 100, 5}} { // 2, 10 and 3 times
		c.Add(Row{Name: "be", Op: OpBandwidth, SizeBytes: 64, Sockets: 1, BytesPerS: &round.be, OpsPerS: &round.be, CPUNSPerByte: ptr(0.5)})
		c.Add(Row{Name: "tcp", Op: OpBandwidth, SizeBytes: 64, Sockets: 1, BytesPerS: &round.tcp, OpsPerS: &round.tcp})
		c.Add(Row{Name: "be", Op: OpLatency, SizeBytes: 64, Sockets: 1, LatencyUS: &Latency{P50: round.p50, P99: 2 * round.p50}})
	}
	rows, ratios := c.Rows(), c.Ratios()
	if len(rows) != 3 || *rows[0].BytesPerS != 100 || *rows[1].BytesPerS != 50 || rows[2].LatencyUS.P50 != 5 {
		t.Errorf("rows %+v", rows)
	}
	if len(ratios) != 1 || ratios[0].To != "tcp" || *ratios[0].OpsPerS != 3 || ratios[0].SizeBytes != 64 || ratios[0].Sockets != 1 || ratios[0].CPU != nil {
		t.Errorf("ratios %+v", ratios)
	}
	var b strings.Builder
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "5.00") || !strings.Contains(lines[1], "10.00") || !strings.Contains(lines[1], "0.5000") || !strings.Contains(lines[2], "3.00") {
		t.Errorf("table:\n%s", b.String())
	}
}
