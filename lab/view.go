package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/internal/lab/judge"
	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

// keepLines is how many of the kernel's last console lines a failure shows.
const keepLines = 80

// silence is how long a guest may say nothing beyond the limit of an item: init kills
// an item at its limit, and says so, unless the kernel hangs.
const silence = time.Minute

// death matches what a kernel says when it cannot go on. Warnings are not among it.
var death = regexp.MustCompile(`Kernel panic|\bOops\b|\bBUG: |\bblocked for more than\b|Unable to handle|self-detected stall`)

// view shows a run while it goes on and its verdict at the end.
type view struct {
	kernel  kernel
	verbose bool
	json    bool // results as events too, for internal/tally
	all     bool // every suite runs
	record  bool // what they show is kept
	compare bool // print the table of the two programs

	mu      sync.Mutex
	judge   *judge.Judge
	release string   // the kernel's, when it has booted
	lines   []string // the console's last lines
	died    string   // the first line in which the kernel said so
	heard   func()   // called for each line of the report; nil: nobody waits
}

func newView(p plan.Plan, k kernel, o options) *view {
	return &view{
		kernel: k, judge: judge.New(p), verbose: o.verbose, json: o.json, all: o.all && k.name != "", record: o.record, compare: o.compare,
	}
}

// watch runs a machine, and ends its context with a cause when the report has been
// silent for the limit.
func (v *view) watch(ctx context.Context, limit time.Duration, run func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(limit, func() { cancel(errors.Errorf("the guest hangs: it has said nothing for %v", limit)) })
	defer timer.Stop()
	v.mu.Lock()
	v.heard = func() { timer.Reset(limit) }
	v.mu.Unlock()
	return run(ctx)
}

// console takes a line of the kernel's console.
func (v *view) console(line []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	text := strings.TrimRight(string(line), "\r")
	if len(v.lines) == keepLines {
		v.lines = v.lines[1:]
	}
	v.lines = append(v.lines, text)
	if v.died == "" && death.MatchString(text) {
		v.died = text
	}
	if v.verbose {
		fmt.Println("console | " + text)
	}
}

// report takes a line of the guest's report.
func (v *view) report(line []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.heard != nil {
		v.heard()
	}
	r, ok := v.judge.Line(line)
	if ok && r.Kind == plan.Boot {
		v.release = r.Text
	}
	switch {
	case !ok:
	case r.Kind == plan.Boot, r.Kind == plan.Ready, r.Kind == plan.Note, r.Kind == plan.Broken:
		fmt.Printf("lab: %s: %s\n", r.Kind, r.Text)
	case r.Kind == plan.Begin:
		fmt.Printf("lab: running %s\n", r.Item)
	case r.Kind == plan.Output && v.verbose:
		fmt.Printf("%s %s | %s\n", r.Item, r.Role, strings.ReplaceAll(r.Text, "\x16", ""))
	}
}

// finish shows the verdict; ended is how the run itself ended.
func (v *view) finish(ended error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	results, problems := v.judge.Finish()
	if v.died != "" {
		problems = append(problems, "the kernel said: "+v.died)
	}
	if ended != nil {
		problems = append(problems, ended.Error())
	}
	good := len(problems) == 0
	for _, r := range results {
		good = v.result(r) && good
		if v.json {
			if err := writeEvents(os.Stdout, v.kernel.name, r); err != nil {
				problems = append(problems, err.Error())
				good = false
			}
		}
	}
	if good && (v.all || v.record) {
		problems = v.verbs(results)
		good = len(problems) == 0
	}
	if good && v.compare {
		if err := writeComparison(os.Stdout, results); err != nil {
			problems = append(problems, err.Error())
			good = false
		}
	}
	for _, p := range problems {
		fmt.Println("FAIL  " + p)
	}
	if good {
		return nil
	}
	if len(problems) > 0 && !v.verbose {
		for _, l := range v.lines {
			fmt.Println("console | " + l)
		}
	}
	return errFailed
}

// result shows what became of an item, and its output if it failed.
func (v *view) result(r judge.Result) bool {
	if len(r.Problems) == 0 {
		counts := ""
		if len(r.Passed) > 0 {
			counts = fmt.Sprintf(": %d tests passed, %d of them on the device, %d skipped", len(r.Passed), r.OnDevice, len(r.Skipped))
		}
		fmt.Printf("ok    %s%s (%s)\n", r.Name, counts, seconds(r.Took))
		return true
	}
	if !v.verbose {
		for _, l := range trim(r.Output) {
			fmt.Println("  " + l)
		}
	}
	for _, p := range r.Problems {
		fmt.Printf("FAIL  %s: %s\n", r.Name, p)
	}
	return false
}
