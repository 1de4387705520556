package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestMeasures(t *testing.T) {
	for _, op := range []string{"bw", "lat"} {
		for _, size := range []string{"1", "300000"} {
			var out bytes.Buffer
			if err := run([]string{op, "--size", size, "--sockets", "3", "--depth", "2", "--seconds", "0.05"}, &out); err != nil {
				t.Fatalf("%s %s: %v", op, size, err)
			}
			var r struct {
				Ops       int64    `json:"ops"`
				BytesPerS *float64 `json:"bytes_per_s"`
				Latency   *struct {
					P50 float64 `json:"p50"`
					P99 float64 `json:"p99"`
				} `json:"latency_us"`
			}
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if r.Ops < 3 || (op == "bw") != (r.BytesPerS != nil) || (op == "lat") != (r.Latency != nil && r.Latency.P50 > 0 && r.Latency.P50 <= r.Latency.P99) {
				t.Errorf("%s of %s bytes: %s", op, size, out.Bytes())
			}
		}
	}
	if run([]string{"both"}, nil) == nil || run([]string{"bw", "--size", "0"}, nil) == nil {
		t.Error("a wrong command line passes")
	}
}
