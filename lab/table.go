package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/byteexpress/byteexpress/internal/lab/judge"
	"github.com/byteexpress/byteexpress/internal/lab/record"
)

// recordDir holds the records that docs/verbs.md is made of, a file for each kernel.
const recordDir = "lab/verbs"

// verbs records what a run showed of each verb, or holds it against the record that
// there is, and gives the contradictions. Some suites only leave in the record what
// others showed.
func (v *view) verbs(results []judge.Result) (problems []string) {
	run := record.Run{Kernel: v.release, Arch: v.kernel.machine.arch, Device: "rxe"}
	for _, r := range results {
		for _, s := range r.Verbs {
			run.Add(s.Verb, s.Outcome, s.Why)
		}
	}
	path := filepath.Join(recordDir, "rxe-"+v.kernel.name+".json")
	old, err := record.Read(path)
	if err != nil && !os.IsNotExist(err) {
		return []string{err.Error()}
	}
	if v.record {
		if !v.all {
			run.Keep(old)
		}
		if err := run.Write(path); err != nil {
			return []string{err.Error()}
		}
		fmt.Printf("lab: %d verbs in %s\n", len(run.Verbs), path)
		return nil
	}
	if err != nil {
		return nil // no record yet
	}
	contradictions, added := run.Compare(old)
	for _, c := range contradictions {
		problems = append(problems, "docs/verbs.md is not true any more (run the lab with -record, then with -table): "+c)
	}
	if len(added) > 0 {
		fmt.Printf("lab: not in docs/verbs.md yet: %s\n", strings.Join(added, ", "))
	}
	return problems
}

// tablePath is the page that writeTable makes of the records.
const tablePath = "docs/verbs.md"

func writeTable() error {
	text, err := table()
	if err != nil {
		return err
	}
	return os.WriteFile(tablePath, []byte(text), 0o644)
}

func table() (string, error) {
	runs, err := record.ReadAll(recordDir)
	return fmt.Sprintf(tableText, record.Markdown(runs)), err
}

const tableText = `# What works on which kernel

Which verbs work on which kernel and device, as runs of the kernel lab showed it: a test names the verbs that it tries
(` + "`testdev.Verb`" + `), and its end decides.

- **works**: a test of it passed. Numbers are notes on what of it is not there.
- **unsupported**: it is refused with one typed error, ` + "`verbs.UnsupportedError`" + `, which names who lacks it and since when it is there.
- **kernel fault**: the kernel does it wrong, or locks up; the tests leave it alone there (` + "`internal/testdev`" + ` has the list).
- **not tested**: no test of it ran on that kernel.

%s
This page is made by ` + "`go run ./lab -table`" + ` from the records in ` + "`lab/verbs`" + `, and these by ` + "`go run ./lab -kernel all -record`" + `.
Every run of the lab holds what it sees against them.
`
