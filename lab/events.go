package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/byteexpress/byteexpress/internal/lab/judge"
)

// event is what `go test -json` prints of a test's end (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string `json:",omitempty"`
}

// writeEvents writes what became of an item as events: one for each of its tests, after
// what a skipped one wrote, one for the item itself when it has none, one for each of its
// problems, which name the kernel, "" for this host's.
func writeEvents(w io.Writer, kernel string, r judge.Result) error {
	enc := json.NewEncoder(w)
	var err error
	pkg := "lab" // suites by import path, so that a test which go test skipped is known to have run
	if len(r.Passed)+len(r.Skipped) > 0 {
		pkg = module + "/" + r.Name
	}
	send := func(e event) {
		if err == nil {
			err = enc.Encode(e)
		}
	}
	write := func(action, test string) { send(event{Action: action, Package: pkg, Test: test}) }
	for _, test := range r.Passed {
		write("pass", test)
	}
	for _, s := range r.Skipped {
		for _, line := range s.Log {
			send(event{Action: "output", Package: pkg, Test: s.Test, Output: line + "\n"})
		}
		write("skip", s.Test)
	}
	for _, problem := range r.Problems {
		if kernel == "" {
			kernel = "of this host"
		}
		write("fail", r.Name+" on kernel "+kernel+": "+problem)
	}
	if len(r.Passed)+len(r.Skipped)+len(r.Problems) == 0 {
		write("pass", r.Name)
	}
	return err
}

// skipped tells that a kernel is left out, and why, on the line that internal/tally
// counts as a skip, or as events.
func skipped(k kernel, why error, asEvents bool) error {
	reason := strings.ReplaceAll(why.Error(), "\n", "; ") // apt says much
	if !asEvents {
		fmt.Printf("skipped: kernel %s: %s\n", k.name, reason)
		return nil
	}
	enc := json.NewEncoder(os.Stdout)
	e := event{Action: "output", Package: "lab", Test: "kernel " + k.name, Output: reason + "\n"}
	if err := enc.Encode(e); err != nil {
		return err
	}
	e.Action, e.Output = "skip", ""
	return enc.Encode(e)
}
