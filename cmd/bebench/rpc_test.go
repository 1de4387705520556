package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

func TestRPC(t *testing.T) {
	ctx := context.Background()
	r := bebench(ctx, "rpc", "-d", "sim:", "-n", "200", "-s", "8,64,4K,1M", "--outstanding", "1,5", "--rounds", "2", "--verify", "--json", "-")
	r.want(t, exit.Done)
	var doc report.Document
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Rows) != 16 || len(doc.Ratios) != 8 {
		t.Fatalf("%d rows and %d ratios, want 16 and 8\n%s", len(doc.Rows), len(doc.Ratios), r.out)
	}
	for _, row := range doc.Rows {
		if row.Ops != 200 || row.LatencyUS == nil || row.GoAllocsPerOp == nil || row.Op != "echo" || row.Outstanding == 0 {
			t.Errorf("row %+v", row)
		}
	}
	bebench(ctx, "rpc", "-d", "sim:", "-n", "100", "-s", "64", "--outstanding", "3", "--on-workers", "--transport", "be").want(t, exit.Done, "echo", " be ")
	bebench(ctx, "rpc", "-d", "sim:", "-n", "100", "-s", "64", "--outstanding", "3", "--rounds", "1", "--transport", "tcp").want(t, exit.Done, "echo", " tcp ")
	bebench(ctx, "rpc", "-d", "sim:", "--stream", "-n", "500", "-s", "64,64K", "--outstanding", "2", "--rounds", "1", "--window", "100K").want(t, exit.Done, "stream", " tcp ")
	bebench(ctx, "rpc", "-d", "sim:", "-n", "10", "-s", "64", "--rounds", "1", "--max-p99", "0.001").want(t, exit.Threshold, "--max-p99")
	for _, args := range [][]string{
		{"-s", "7"}, {"-s", "33M"}, {"--outstanding", "0"}, {"--transport", "udp"}, {"-n", "1", "-D", "1"}, {"--window", "1K"},
		{"--stream", "--verify"}, {"--also", "x"}, {"--also", "x=y", "-n", "1"}, {"--rounds", "0"},
	} {
		bebench(ctx, append([]string{"rpc", "-d", "sim:"}, args...)...).want(t, exit.Usage)
	}
	bebench(ctx, "rpc", "-d", "sim:", "-s", "64", "-D", "0.01", "--also", "none=./does-not-exist").want(t, exit.Failed, "does-not-exist")
}

func TestRPCOfTwoProcesses(t *testing.T) {
	p := port(t)
	stop := serverProcess(t, p, "rpc", "--transport", "tcp", "-1")
	clientProcess(t, "rpc", "--transport", "tcp", "-n", "100", "-s", "64,64K", "--outstanding", "4", "-p", p, "127.0.0.1").want(t, exit.Done, "echo", " tcp ")
	if code, out := stop(); code != exit.Done {
		t.Errorf("server: exit status %d\n%s", code, out)
	}
}
