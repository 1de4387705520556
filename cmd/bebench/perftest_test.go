package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

// TestPeerPerftest has both ends speak perftest's exchange, with perftest's default
// number of messages. The lab has the real programs.
func TestPeerPerftest(t *testing.T) {
	for line, iters := range map[string]int64{"send bw": 1000, "write bw": 5000, "write lat": 1000, "read bw -q 2 -n 50": 100} {
		r := bebench(context.Background(), onSim(line+" --peer perftest --json -")...)
		r.want(t, exit.Done)
		var doc report.Document
		if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Rows) != 1 || doc.Rows[0].Ops != iters || doc.Rows[0].Verified != nil {
			t.Errorf("%s: rows %+v, want one of %d messages", line, doc.Rows, iters)
		}
	}
}
