package main

import (
	"encoding/json"
	"io"

	"github.com/byteexpress/byteexpress/internal/lab/judge"
)

// event is what `go test -json` prints of a test's end (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
}

// writeEvents writes what became of an item as events: one for each of its tests,
// one for the item itself when it has none, one for each of its problems.
func writeEvents(w io.Writer, r judge.Result) error {
	enc := json.NewEncoder(w)
	var err error
	pkg := "lab" // suites by import path, so that a test which go test skipped is known to have run
	if len(r.Passed)+len(r.Skipped) > 0 {
		pkg = module + "/" + r.Name
	}
	write := func(action, test string) {
		if err == nil {
			err = enc.Encode(event{Action: action, Package: pkg, Test: test})
		}
	}
	for _, test := range r.Passed {
		write("pass", test)
	}
	for _, test := range r.Skipped {
		write("skip", test)
	}
	for _, problem := range r.Problems {
		write("fail", r.Name+": "+problem)
	}
	if len(r.Passed)+len(r.Skipped)+len(r.Problems) == 0 {
		write("pass", r.Name)
	}
	return err
}
