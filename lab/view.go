package main

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/byteexpress/byteexpress/internal/lab/judge"
	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

// keepLines is how many of the kernel's last console lines a failure shows.
const keepLines = 60

// view shows a run while it goes on and its verdict at the end.
type view struct {
	verbose bool
	json    bool // results as events too, for internal/tally

	mu     sync.Mutex
	judge  *judge.Judge
	kernel []string // the console's last lines
}

func newView(p plan.Plan, o options) *view {
	return &view{judge: judge.New(p), verbose: o.verbose, json: o.json}
}

// console takes a line of the kernel's console.
func (v *view) console(line []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	text := strings.TrimRight(string(line), "\r")
	if len(v.kernel) == keepLines {
		v.kernel = v.kernel[1:]
	}
	v.kernel = append(v.kernel, text)
	if v.verbose {
		fmt.Println("console | " + text)
	}
}

// report takes a line of the guest's report.
func (v *view) report(line []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r, ok := v.judge.Line(line)
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
	if ended != nil {
		problems = append(problems, ended.Error())
	}
	good := len(problems) == 0
	for _, r := range results {
		good = v.result(r) && good
		if v.json {
			if err := writeEvents(os.Stdout, r); err != nil {
				problems = append(problems, err.Error())
				good = false
			}
		}
	}
	for _, p := range problems {
		fmt.Println("FAIL  " + p)
	}
	if good {
		return nil
	}
	if len(problems) > 0 && !v.verbose {
		for _, l := range v.kernel {
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
