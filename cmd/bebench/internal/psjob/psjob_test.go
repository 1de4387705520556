package psjob

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/ps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a job that ends soon.
func small(w Workload) Config {
	c := Defaults(w)
	c.Dim, c.Rows, c.SliceBytes, c.MaxBytes, c.Outstanding = 16, 500, 1<<20, 64<<10, 4
	return c
}

func TestLocalOverTCP(t *testing.T) {
	for _, w := range []Workload{Inference, Training} {
		cfg := small(w)
		ctx := context.Background()
		job, err := StartLocal(ctx, &cfg, "tcp", OverTCP, Synthetic(cfg.Rows, cfg.Seed))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := job.Turn(ctx, 0); err != nil {
				t.Error(err)
			}
		}
		if err := job.ReadBack(ctx); err != nil {
			t.Error(err)
		}
		want := map[Workload]int{Inference: 1, Training: 2}[w]
		if got := job.Samples(); len(got) != want {
			t.Errorf("%s: %d samples, want %d", w, len(got), want)
		}
		for _, s := range job.Samples() {
			if s.Ops == 0 || s.Latency.Count() != s.Ops || s.Bytes < 3*int64(cfg.SliceBytes) || s.Verified == nil || !*s.Verified {
				t.Errorf("%s %s: %d operations, %d latencies, %d bytes", w, s.Op, s.Ops, s.Latency.Count(), s.Bytes)
			}
		}
		if job.Verified() == 0 {
			t.Errorf("%s: nothing verified", w)
		}
		if err := job.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWrongValuesAreFound is the negative control: another push, or other initial
// values, must not pass.
func TestWrongValuesAreFound(t *testing.T) {
	for _, w := range []Workload{Inference, Training} {
		cfg := small(w)
		ctx := context.Background()
		job, err := StartLocal(ctx, &cfg, "tcp", OverTCP, Synthetic(cfg.Rows, cfg.Seed))
		if err != nil {
			t.Fatal(err)
		}
		if w == Training {
			one := make([]float32, cfg.Dim)
			one[cfg.Dim-1] = 1
			if err := job.workers[0].client.Push(ctx, job.truth.keys[:1], one); err != nil {
				t.Fatal(err)
			}
			err = job.ReadBack(ctx)
		} else {
			job.truth.rows[len(job.truth.rows)/2]++
			err = job.Turn(ctx, 0)
		}
		if exit.Code(err) != exit.Mismatch || !strings.Contains(err.Error(), "key 0x") {
			t.Errorf("%s: err = %v, want a mismatch that names the key", w, err)
		}
		for _, s := range job.Samples() {
			if *s.Verified {
				t.Errorf("%s: verified in spite of a mismatch", w)
			}
		}
		if err := job.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestManyRows is for rows that are too many to be known beforehand.
func TestManyRows(t *testing.T) {
	cfg := small(Inference)
	cfg.Dim, cfg.MaxBytes = 1<<16, 1<<20
	stream := make([]uint64, 2000)
	for i := range stream {
		stream[i] = uint64(i)
	}
	tr := newTruth(&cfg, stream)
	if tr.rows != nil {
		t.Fatalf("%d MiB are known beforehand", len(tr.rows)>>18)
	}
	row := make([]float32, cfg.Dim)
	for i := range row {
		row[i] = ps.InitialValue(cfg.Seed, 7, i, 1)
	}
	if err := tr.check(7, row); err != nil {
		t.Error(err)
	}
	row[cfg.Dim-1]++
	if tr.check(7, row) == nil || tr.check(5000, row) == nil || tr.check(7, row[:5]) == nil {
		t.Error("a wrong row passes")
	}
}

func TestStopIssuesNothingMore(t *testing.T) {
	cfg := small(Inference)
	ctx := context.Background()
	job, err := StartLocal(ctx, &cfg, "tcp", OverTCP, Synthetic(cfg.Rows, cfg.Seed))
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	job.Stop()
	if err := job.Turn(ctx, 0); err != nil {
		t.Error(err)
	}
	if s := job.Samples(); len(s) != 1 || s[0].Ops != 0 || !s[0].Stopped {
		t.Errorf("samples after Stop: %+v", s)
	}
}

func TestRequestsFollowFromTheSeed(t *testing.T) {
	cfg := small(Inference)
	a, b := cfg.requests(10000, 3, 1), cfg.requests(10000, 3, 1)
	if len(a) == 0 || len(a) != len(b) || a[0] != b[0] || a[len(a)-1] != b[len(b)-1] {
		t.Error("same arguments, other requests")
	}
	if c := cfg.requests(10000, 4, 1); c[0] == a[0] {
		t.Error("another slice, same requests")
	}
	for _, r := range append(a, cfg.requests(3, 0, 0)...) {
		if r.n < 1 || r.n*cfg.rowBytes() > cfg.MaxBytes+cfg.rowBytes() || r.from < 0 {
			t.Fatalf("request %+v", r)
		}
	}
	for _, r := range cfg.requests(3, 0, 0) {
		if r.from+r.n > 3 {
			t.Fatalf("request %+v of a stream of 3 keys", r)
		}
	}
}

func TestFromText(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.go": "x := f(x, y_1)\n", "sub/b.txt": "x\xc3\xa9 x", "empty": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := FromText(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	// x f x y_1, then xé x
	if len(keys) != 6 || keys[0] != keys[2] || keys[0] != keys[5] || len(Distinct(keys)) != 4 {
		t.Errorf("keys = %x", keys)
	}
	if got := TopShare(keys, 1); got != 0.5 {
		t.Errorf("share of the most frequent word = %v, want 0.5", got)
	}
	for _, bad := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "empty"), os.DevNull} {
		if _, err := FromText(context.Background(), bad); err == nil || !strings.Contains(err.Error(), "--keys-from") {
			t.Errorf("%s: err = %v", bad, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := appendWords(ctx, nil, filepath.Join(dir, "a.go")); err != context.Canceled {
		t.Errorf("interrupted inside a file: %v", err)
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.Workload = "x" }, "--workload"},
		{func(c *Config) { c.Shards = 0 }, "--shards"},
		{func(c *Config) { c.Workers = 5000 }, "--workers"},
		{func(c *Config) { c.MaxBytes = c.MinBytes - 1 }, "--max-size"},
		{func(c *Config) { c.MaxBytes = 1 << 30 }, "--max-size"},
	} {
		c := Defaults(Inference)
		tt.change(&c)
		err := c.Check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Check = %v, want %q", err, tt.want)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	cfg := Defaults(Inference)
	tr := newTruth(&cfg, []uint64{9})
	row := make([]float32, cfg.Dim)
	for i := range row {
		row[i] = ps.InitialValue(cfg.Seed, 9, i, 1)
	}
	b.SetBytes(int64(cfg.rowBytes()))
	for b.Loop() {
		if err := tr.check(9, row); err != nil {
			b.Fatal(err)
		}
	}
}
