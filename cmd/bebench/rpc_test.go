package main

import (
	"context"
	"encoding/json"
	"os/exec"
	"testing"
	"time"

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
		{"--replicas", "65"}, {"--replicas", "1", "--kill", "1s"}, {"--replicas", "2", "--stream"}, {"--transport", "auto", "--also", "x=y"}, {"--replicas", "2", "127.0.0.1"},
		{"--stream", "--verify"}, {"--also", "x"}, {"--also", "x=y", "-n", "1"}, {"--rounds", "0"},
		{"--replicas", "2", "-1"}, {"--replicas", "2", "-R", "--transport", "be"}, {"bw", "lat"}, {"--replicas", "2", "--kill", "1s", "-s", "64", "--outstanding", "1", "--rounds", "1", "-D", "1"},
	} {
		bebench(ctx, append([]string{"rpc", "-d", "sim:"}, args...)...).want(t, exit.Usage)
	}
	bebench(ctx, "rpc", "--transport", "tcp", "--replicas", "2", "-n", "10", "-s", "64", "--rounds", "1", "--kill", "1h").want(t, exit.Done, " tcp ", "--kill 1h0m0s: the run was over before")
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

// TestRPCReplicas: of three servers one ends while calls go by a channel: none fails, and
// the counters add up.
func TestRPCReplicas(t *testing.T) {
	ctx := context.Background()
	r := bebench(ctx, "rpc", "-d", "sim:", "--replicas", "3", "--kill", "200ms", "-D", "0.5", "-s", "64", "--outstanding", "4", "--rounds", "2", "--verify", "--json", "-")
	r.want(t, exit.Done)
	var doc report.Document
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Rows) != 1 {
		t.Fatalf("%d rows, want 1", len(doc.Rows))
	}
	n := doc.Rows[0].Counters
	if doc.Rows[0].Name != "auto" || n["failed"] != 0 || n["calls"] < doc.Rows[0].Ops || n["attempts"] != n["attempts_at_0"]+n["attempts_at_1"]+n["attempts_at_2"] {
		t.Errorf("row %+v", doc.Rows[0])
	}
	bebench(ctx, "rpc", "bw", "-d", "sim:", "--transport", "auto", "-n", "500", "-s", "64", "--rounds", "1").want(t, exit.Done, " 64 ", " auto ", " rdma ", "0 failed")
	bebench(ctx, "rpc", "lat", "-d", "sim:", "--transport", "tcp", "--replicas", "2", "-n", "100", "-s", "64", "--rounds", "1").want(t, exit.Done, " tcp ", "0 failed")
}

// TestRPCReplicasOfProcesses: of three server processes one is killed meanwhile.
func TestRPCReplicasOfProcesses(t *testing.T) {
	args := []string{"rpc", "--transport", "tcp", "-D", "4", "-s", "64", "--outstanding", "4", "--rounds", "1", "--verify"}
	var last *exec.Cmd
	for range 3 {
		p := port(t)
		var out lockedBuffer
		last = process(t, "rpc", "--transport", "tcp", "-1", "-p", p)
		last.Stdout, last.Stderr = &out, &out
		startWhen(t, last, &out, "waiting for a client")
		args = append(args, "127.0.0.1:"+p)
	}
	var out lockedBuffer
	client := process(t, args...)
	client.Stdout, client.Stderr = &out, &out
	startWhen(t, client, &out, "Calls of archon")
	defer time.AfterFunc(2*time.Second, func() { _ = last.Process.Kill() }).Stop()
	_ = client.Wait()
	result{client.ProcessState.ExitCode(), out.String(), ""}.want(t, exit.Done, " tcp ", "0 failed", " none ")
}
