package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

const (
	onePass = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- PASS: TestA (0.00s)\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"pass","Package":"p","Elapsed":0.1}
`
	oneFail = `{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"fail","Package":"p","Elapsed":0.1}
`
	oneSkip = `{"Action":"output","Package":"p","Test":"TestC","Output":"=== RUN   TestC\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:2: seed 1\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:3: RDMA_DEVICE is not set\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"--- SKIP: TestC (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"pass","Package":"p"}
`
	buildFail = `{"ImportPath":"p","Action":"build-output","Output":"x.go:1:1: expected declaration\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p"}
`
	benchFails = `{"Action":"run","Package":"q","Test":"BenchmarkA"}
{"Action":"output","Package":"q","Test":"BenchmarkA","Output":"BenchmarkA 1 5 ns/op\n"}
{"Action":"pass","Package":"q"}
{"Action":"run","Package":"p","Test":"BenchmarkB"}
{"Action":"output","Package":"p","Test":"BenchmarkB","Output":"panic: index out of range\n"}
{"Action":"fail","Package":"p","Elapsed":0}
`
	died = `{"Action":"run","Package":"p","Test":"TestD"}
{"Action":"output","Package":"p","Test":"TestD","Output":"=== RUN   TestD\n"}
`
)

func TestRun(t *testing.T) {
	exit1 := errors.New("exit status 1")
	for _, tt := range []struct {
		desc, output string
		err          error
		last         string
		contains     string
	}{
		{"tests pass", onePass, nil, "1 passed, 0 failed, 0 skipped", "ok   p 0.1s"},
		{"a test fails", onePass + oneFail, exit1, "1 passed, 1 failed, 0 skipped", "got 1, want 2"},
		{"a test fails, but the command does not", oneFail, nil, "0 passed, 1 failed, 0 skipped", "FAILED part: p TestB"},
		{"a test skips", oneSkip, nil, "0 passed, 0 failed, 1 skipped", "skipped p TestC: RDMA_DEVICE is not set"},
		{"a package does not build", buildFail, exit1, "0 passed, 1 failed, 0 skipped", "expected declaration"},
		{"a test binary dies", onePass + died, exit1, "1 passed, 1 failed, 0 skipped", "p TestD: did not end"},
		{"a benchmark panics", benchFails, exit1, "0 passed, 1 failed, 0 skipped", "index out of range"},
		{"a plain target passes", "fine\n", nil, "1 passed, 0 failed, 0 skipped", "fine"},
		{"a plain target fails", "bad\n", exit1, "0 passed, 1 failed, 0 skipped", "bad"},
		{"a plain target skips", "skipped: no network\n", nil, "0 passed, 0 failed, 1 skipped", "skipped no network"},
		{"tests pass but the command fails", onePass, exit1, "1 passed, 1 failed, 0 skipped", "FAILED part: exit status 1"},
		{"no newline at the end", strings.TrimSuffix(onePass, "\n"), nil, "1 passed, 0 failed, 0 skipped", ""},
		{"a line that looks like JSON", "{\"a\":1}\n", nil, "1 passed, 0 failed, 0 skipped", "{\"a\":1}"},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			var out bytes.Buffer
			ok := run([]string{"part"}, func(_ string, w io.Writer) error {
				for i := range len(tt.output) { // the worst way to cut it
					fmt.Fprint(w, tt.output[i:i+1])
				}
				return tt.err
			}, &out)
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if last := lines[len(lines)-1]; last != tt.last {
				t.Errorf("last line %q, want %q", last, tt.last)
			}
			if want := strings.Contains(tt.last, " 0 failed"); ok != want {
				t.Errorf("run = %v, want %v", ok, want)
			}
			if !strings.Contains(out.String(), tt.contains) {
				t.Errorf("output lacks %q:\n%s", tt.contains, out.String())
			}
		})
	}
}

// A failure does not keep later targets from running, and all are summed.
func TestRunGoesOn(t *testing.T) {
	var out bytes.Buffer
	ok := run([]string{"a", "b", "c"}, func(target string, w io.Writer) error {
		switch target {
		case "a":
			io.WriteString(w, oneFail)
			return errors.New("exit status 1")
		case "b":
			io.WriteString(w, onePass+oneSkip)
		}
		return nil
	}, &out)
	if ok || !strings.HasSuffix(out.String(), "\n2 passed, 1 failed, 1 skipped\n") {
		t.Errorf("run = %v, output:\n%s", ok, out.String())
	}
}

// What one target skips and another passes was not skipped; what every target
// skips is told once for each reason.
func TestSkippedInEveryTarget(t *testing.T) {
	cPasses := `{"Action":"pass","Package":"p","Test":"TestC"}` + "\n"
	other := strings.ReplaceAll(oneSkip, "TestC", "TestD")
	for _, tt := range []struct {
		outputs []string
		want    string
	}{
		{[]string{oneSkip, cPasses}, "1 passed, 0 failed, 0 skipped"},
		{[]string{cPasses, oneSkip}, "1 passed, 0 failed, 0 skipped"},
		{[]string{oneSkip + other, cPasses}, "skipped p TestD: RDMA_DEVICE is not set\n1 passed, 0 failed, 1 skipped"},
		{[]string{oneSkip + other}, "skipped p TestC and 1 more: RDMA_DEVICE is not set\n0 passed, 0 failed, 2 skipped"},
	} {
		var out bytes.Buffer
		targets := []string{"0", "1"}[:len(tt.outputs)]
		run(targets, func(target string, w io.Writer) error {
			_, err := io.WriteString(w, tt.outputs[target[0]-'0'])
			return err
		}, &out)
		if !strings.HasSuffix(out.String(), "\n"+tt.want+"\n") {
			t.Errorf("want %q at the end of\n%s", tt.want, out.String())
		}
	}
}
