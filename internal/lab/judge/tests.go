package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/byteexpress/byteexpress/internal/lab/record"
	"github.com/byteexpress/byteexpress/internal/testdev"
)

// marker starts each line that the testing package itself writes under
// -test.v=test2json, so that what a test prints cannot pass for a result
// (go doc cmd/test2json).
const marker = "\x16"

var (
	resultLine = regexp.MustCompile(`^( *)--- (PASS|FAIL|SKIP): (\S+) \(`)
	nameLine   = regexp.MustCompile(`^=== (RUN|CONT|NAME|PAUSE) +(\S*)`)
)

// tests reads the output of one test binary.
type tests struct {
	current  string              // the test that writes at the moment
	logs     map[string][]string // what each test wrote, by its full name
	onDevice map[string]bool     // top-level tests that asked for the device
	verbs    map[string][]string // that each test shows, by its full name
	shown    []Shown
	passed   []string
	failed   []string
	skipped  []string
	pass     bool // the binary's last word
}

func (t *tests) line(text string) {
	// What a test printed without a newline stands before the marker.
	plain, framed, _ := strings.Cut(text, marker)
	if plain != "" {
		if t.logs == nil {
			t.logs, t.onDevice, t.verbs = map[string][]string{}, map[string]bool{}, map[string][]string{}
		}
		t.logs[t.current] = append(t.logs[t.current], plain)
		if strings.Contains(plain, testdev.Mark) {
			t.onDevice[top(t.current)] = true
		}
		if _, verb, ok := strings.Cut(plain, testdev.MarkVerb); ok {
			t.verbs[t.current] = append(t.verbs[t.current], verb)
		}
	}
	switch framed {
	case "PASS":
		t.pass = true
	case "FAIL":
		t.pass = false
	}
	if m := nameLine.FindStringSubmatch(framed); m != nil {
		t.current = m[2]
		if m[1] == "PAUSE" {
			t.current = ""
		}
		return
	}
	if m := resultLine.FindStringSubmatch(framed); m != nil {
		t.current = m[3]
		t.show(m[3], m[2])
		switch m[2] {
		case "FAIL":
			t.failed = append(t.failed, m[3])
		case "SKIP":
			t.skipped = append(t.skipped, m[3])
		case "PASS":
			t.passed = append(t.passed, m[3])
		}
	}
}

// show notes what the end of a test shows of its verbs. A test that was skipped for
// another reason than the kernel or the device shows nothing, nor does one that ran
// on another device than the one under test, as a simulated one.
func (t *tests) show(name, result string) {
	outcome := map[string]record.Outcome{"PASS": record.Works, "FAIL": record.Fails}[result]
	why := ""
	if result == "SKIP" {
		for _, l := range t.logs[name] {
			if _, text, ok := strings.Cut(l, testdev.MarkUnsupported); ok {
				outcome, why = record.Unsupported, text
			}
			if _, text, ok := strings.Cut(l, testdev.MarkFault); ok {
				outcome, why = record.Fault, text
			}
		}
	}
	if outcome == "" || !t.onDevice[top(name)] {
		return
	}
	for _, v := range t.verbs[name] {
		t.shown = append(t.shown, Shown{v, outcome, why})
	}
}

// top is the test that a subtest belongs to.
func top(name string) string {
	name, _, _ = strings.Cut(name, "/")
	return name
}

func (t *tests) finish(r *Result, needsDevice bool) {
	r.Passed, r.Verbs = t.passed, t.shown
	ended := slices.Concat(t.passed, t.skipped)
	for _, name := range t.passed {
		parent := slices.ContainsFunc(ended, func(n string) bool { return strings.HasPrefix(n, name+"/") })
		if t.onDevice[top(name)] && !parent && slices.Contains(t.passed, top(name)) {
			r.OnDevice++
		}
	}
	for _, name := range t.failed {
		r.Problems = append(r.Problems, "test failed: "+name)
	}
	for _, name := range t.skipped {
		r.Skipped = append(r.Skipped, Skip{name, t.logs[name]})
		if slices.ContainsFunc(t.logs[name], func(l string) bool { return strings.Contains(l, testdev.Env) }) {
			r.Problems = append(r.Problems, fmt.Sprintf("test %s was skipped for want of %s", name, testdev.Env))
		}
	}
	if r.OnDevice == 0 && needsDevice {
		r.Problems = append(r.Problems, fmt.Sprintf("no test passed that uses the device (%d passed in all)", len(t.passed)))
	}
	if !t.pass {
		r.Problems = append(r.Problems, "the test binary did not end with PASS")
	}
}
