// Command tally runs make targets one after the other and counts what they ran:
//
//	go run ./internal/tally TARGET...
//
// Each target gets JSON=-json. What it prints as `go test -json` events is
// counted test by test, subtests included; a target without such events counts
// as one, and as skipped when it prints a line that starts with "skipped:". A
// target that fails without a failed test counts as one failure. Later targets
// run even if an earlier one failed. A test that one target skips and another
// passes, as one that needs the kernel lab, is not skipped in the end.
//
// The last line is "N passed, N failed, N skipped"; the exit status is 1 if
// anything failed.
package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: tally TARGET...")
		os.Exit(2)
	}
	if !run(os.Args[1:], makeTarget, os.Stdout) {
		os.Exit(1)
	}
}

// makeTarget runs one make target and sends its output to w.
func makeTarget(target string, w io.Writer) error {
	cmd := exec.Command("make", "-s", "--no-print-directory", target, "JSON=-json")
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	return cmd.Run()
}

// run runs the targets with start, writes their reports and the counts to w, and
// reports whether all went well.
func run(targets []string, start func(target string, w io.Writer) error, w io.Writer) bool {
	var total counts
	var failures []string
	var skips []skip
	passed := map[test]bool{}
	for _, target := range targets {
		fmt.Fprintf(w, "== %s\n", target)
		begin := time.Now()
		c := newCounter(w)
		err := start(target, c)
		c.finish(err)
		for _, f := range c.failures {
			failures = append(failures, target+": "+f)
		}
		skips = append(skips, c.skips...)
		maps.Copy(passed, c.passedTests)
		total.add(c.counts)
		fmt.Fprintf(w, "== %s: %v in %v\n", target, c.counts, time.Since(begin).Round(100*time.Millisecond))
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			fmt.Fprintf(w, "%s: %v\n", target, err)
		}
	}
	skips = slices.DeleteFunc(skips, func(s skip) bool { return passed[s.test] })
	total.skipped = len(skips)
	for _, line := range byReason(skips) {
		fmt.Fprintln(w, line)
	}
	for _, f := range failures {
		fmt.Fprintln(w, "FAILED", f)
	}
	fmt.Fprintln(w, total)
	return total.failed == 0
}
