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
	failures []string // names of what failed
	skips    []string // names of what was skipped, with the reason

	out      io.Writer
	partial  []byte                 // a line without its end yet
	logs     map[[2]string][]string // output by package and test
	failedIn map[string]bool        // packages with a failed test
	saidSkip string                 // last "skipped:" line of a target without events
}

func newCounter(out io.Writer) *counter {
	return &counter{out: out, logs: map[[2]string][]string{}, failedIn: map[string]bool{}}
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
		if key[1] != "" && err != nil {
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
		c.skips = append(c.skips, c.saidSkip)
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
	key := [2]string{e.Package, e.Test}
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
		} else {
			fmt.Fprintf(c.out, "ok   %s %.1fs\n", e.Package, e.Elapsed)
		}
	case "skip":
		if e.Test != "" {
			c.skipped++
			c.skips = append(c.skips, e.Package+" "+e.Test+": "+reason(c.logs[key]))
		}
	case "fail":
		if e.Test == "" {
			if !c.failedIn[e.Package] {
				c.fail(key, "failed outside its tests")
			}
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

func (c *counter) fail(key [2]string, how string) {
	c.failed++
	c.failedIn[key[0]] = true
	name := strings.TrimSpace(key[0] + " " + key[1])
	if how != "" {
		name += ": " + how
	}
	c.failures = append(c.failures, name)
}

func (c *counter) print(log []string) {
	for _, s := range log {
		fmt.Fprint(c.out, s)
	}
}

// reason finds what t.Skip said in a skipped test's output.
func reason(log []string) string {
	for _, s := range log {
		s = strings.TrimSpace(s)
		if !strings.HasPrefix(s, "===") && !strings.HasPrefix(s, "---") && s != "" {
			if _, after, ok := strings.Cut(s, ".go:"); ok {
				if _, text, ok := strings.Cut(after, ": "); ok {
					return text
				}
			}
			return s
		}
	}
	return "no reason given"
}
