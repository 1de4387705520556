package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// counts holds how many tests, or targets without tests, ended how.
type counts struct{ passed, failed, skipped int }

func (c *counts) add(d counts) {
	c.passed += d.passed
	c.failed += d.failed
	c.skipped += d.skipped
}

func (c counts) sum() int { return c.passed + c.failed + c.skipped }

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// event is one line of `go test -json` (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

// counter takes a target's output, line by line. It counts test events and shows
// only what the reader wants of them: a line a package, and the output of what
// failed. Other lines pass through.
type counter struct {
	counts
	failures    []string // names of what failed
	skips       []skip
	passedTests map[test]bool

	out      io.Writer
	partial  []byte // a line without its end yet
	logs     map[test][]string
	failedIn map[string]bool // packages with a failed test
	saidSkip string          // last "skipped:" line of a target without events
}

func newCounter(out io.Writer) *counter {
	return &counter{out: out, logs: map[test][]string{}, failedIn: map[string]bool{}, passedTests: map[test]bool{}}
}

// Write takes the next bytes of output.
func (c *counter) Write(p []byte) (int, error) {
	c.partial = append(c.partial, p...)
	for {
		i := bytes.IndexByte(c.partial, '\n')
		if i < 0 {
			return len(p), nil
		}
		c.line(string(c.partial[:i]))
		c.partial = c.partial[i+1:]
	}
}

// finish ends the target; err is how its command ended.
func (c *counter) finish(err error) {
	if len(c.partial) > 0 {
		c.line(string(c.partial))
	}
	// What was running when the process died never reported an end.
	for key, log := range c.logs {
		if key.name != "" && err != nil && !strings.HasPrefix(key.name, "Benchmark") { // benchmarks report no end
			c.fail(key, "did not end")
			c.print(log)
		}
	}
	switch {
	case err != nil && c.failed == 0:
		c.failed++
		c.failures = append(c.failures, err.Error())
	case c.sum() > 0:
	case c.saidSkip != "":
		c.skipped++
		c.skips = append(c.skips, skip{reason: c.saidSkip})
	default:
		c.passed++
	}
}

func (c *counter) line(s string) {
	var e event
	if !strings.HasPrefix(s, "{") || json.Unmarshal([]byte(s), &e) != nil || e.Action == "" {
		if reason, ok := strings.CutPrefix(s, "skipped:"); ok {
			c.saidSkip = strings.TrimSpace(reason)
		}
		fmt.Fprintln(c.out, s)
		return
	}
	c.event(e)
}

func (c *counter) event(e event) {
	key := test{e.Package, e.Test}
	switch e.Action {
	case "output":
		c.logs[key] = append(c.logs[key], e.Output)
		return
	case "build-output":
		fmt.Fprint(c.out, e.Output)
		return
	case "pass":
		if e.Test != "" {
			c.passed++
			c.passedTests[key] = true
		} else {
			fmt.Fprintf(c.out, "ok   %s %.1fs\n", e.Package, e.Elapsed)
		}
	case "skip":
		if e.Test != "" {
			c.skipped++
			c.skips = append(c.skips, skip{key, reason(c.logs[key])})
		}
	case "fail":
		if e.Test == "" {
			if !c.failedIn[e.Package] {
				c.fail(key, "failed outside its tests")
			}
			c.printBenchmarks(e.Package)
			fmt.Fprintf(c.out, "FAIL %s %.1fs\n", e.Package, e.Elapsed)
		} else {
			c.fail(key, "")
		}
		c.print(c.logs[key])
	default: // start, run, pause, cont, bench, build-fail
		return
	}
	delete(c.logs, key)
}

func (c *counter) fail(key test, how string) {
	c.failed++
	c.failedIn[key.pkg] = true
	name := strings.TrimSpace(key.pkg + " " + key.name)
	if how != "" {
		name += ": " + how
	}
	c.failures = append(c.failures, name)
}

// printBenchmarks shows what the benchmarks of a failed package wrote.
func (c *counter) printBenchmarks(pkg string) {
	for key, log := range c.logs {
		if key.pkg == pkg && strings.HasPrefix(key.name, "Benchmark") {
			c.print(log)
			delete(c.logs, key)
		}
	}
}

func (c *counter) print(log []string) {
	for _, s := range log {
		fmt.Fprint(c.out, s)
	}
}

// test names a test, or with an empty name its package.
type test struct{ pkg, name string }

// skip is a skipped test, or the zero test for a target without tests.
type skip struct {
	test
	reason string
}

// byReason gives a line for each reason to skip: the first test, and how many
// more there are.
func byReason(skips []skip) (lines []string) {
	var reasons []string
	groups := map[string][]skip{}
	for _, s := range skips {
		if groups[s.reason] == nil {
			reasons = append(reasons, s.reason)
		}
		groups[s.reason] = append(groups[s.reason], s)
	}
	for _, r := range reasons {
		name := strings.TrimSpace(groups[r][0].pkg + " " + groups[r][0].name)
		if n := len(groups[r]); n > 1 {
			name += fmt.Sprintf(" and %d more", n-1)
		}
		if name != "" {
			name += ": "
		}
		lines = append(lines, "skipped "+name+r)
	}
	return lines
}

// reason finds what t.Skip said in a skipped test's output: its last line.
func reason(log []string) string {
	why := "no reason given"
	for _, s := range log {
		s = strings.TrimSpace(s)
		if s == "" || strings.HasPrefix(s, "===") || strings.HasPrefix(s, "---") {
			continue
		}
		why = s
		if _, after, ok := strings.Cut(s, ".go:"); ok {
			if _, text, ok := strings.Cut(after, ": "); ok {
				why = text
			}
		}
	}
	return why
}
