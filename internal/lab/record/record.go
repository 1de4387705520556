// Package record keeps what runs of the kernel lab showed of each verb, and makes
// the table of the documentation from it. Nothing in that table is written by hand.
package record

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"
)

// Outcome is what one test, or a whole run, shows of a verb.
type Outcome string

// The outcomes. A verb of which one test passed and another was skipped works, but
// not in every way.
const (
	Works       Outcome = "works"
	Unsupported Outcome = "unsupported" // refused with verbs.UnsupportedError
	Fault       Outcome = "kernel fault"
	Fails       Outcome = "fails"
)

// rank orders the outcomes of tests: the run's is the highest.
var rank = map[Outcome]int{Unsupported: 1, Fault: 2, Works: 3, Fails: 4}

// Verb is what a run showed of a verb.
type Verb struct {
	Outcome Outcome
	But     []string `json:",omitempty"` // what was not supported, or is a fault
}

// Run is one run of every suite on one kernel and device.
type Run struct {
	Kernel string // release
	Arch   string
	Device string // kernel driver
	Verbs  map[string]Verb
}

// Add adds what one test showed; why is its reason if it was skipped.
func (r *Run) Add(verb string, o Outcome, why string) {
	if r.Verbs == nil {
		r.Verbs = map[string]Verb{}
	}
	v := r.Verbs[verb]
	if rank[o] > rank[v.Outcome] {
		v.Outcome = o
	}
	if why != "" && !slices.Contains(v.But, why) {
		v.But = append(v.But, why)
		slices.Sort(v.But)
	}
	r.Verbs[verb] = v
}

// Keep takes over the verbs of an older run that this one says nothing of.
func (r *Run) Keep(old Run) {
	for name, v := range old.Verbs {
		if _, ok := r.Verbs[name]; !ok {
			if r.Verbs == nil {
				r.Verbs = map[string]Verb{}
			}
			r.Verbs[name] = v
		}
	}
}

// Compare gives where this run contradicts an older one, as where it tests a verb no more,
// and which verbs only this one has.
func (r *Run) Compare(old Run) (contradictions, added []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Verbs)) {
		was, ok := old.Verbs[name]
		switch now := r.Verbs[name].Outcome; {
		case !ok:
			added = append(added, name)
		case was.Outcome != now:
			contradictions = append(contradictions, name+": "+string(now)+", recorded as: "+string(was.Outcome))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old.Verbs)) {
		if _, ok := r.Verbs[name]; !ok {
			contradictions = append(contradictions, name+": not tested, recorded as: "+string(old.Verbs[name].Outcome))
		}
	}
	return contradictions, added
}

// Write writes the run to a file.
func (r *Run) Write(path string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Read reads a file that Write wrote.
func Read(path string) (r Run, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = errors.Wrap(json.Unmarshal(text, &r), path)
	}
	return r, err
}

// ReadAll reads every file of a directory, in the order of their names.
func ReadAll(dir string) ([]Run, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var out []Run
	for _, p := range paths {
		r, err := Read(p)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}
