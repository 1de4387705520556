package judge

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/byteexpress/byteexpress/internal/lab/plan"
	"github.com/byteexpress/byteexpress/internal/lab/record"
)

// Result is what became of one item of the plan.
type Result struct {
	Name     string
	Problems []string // why it is not good; empty when it is
	Passed   []string // tests and subtests
	Skipped  []Skip   // tests and subtests
	OnDevice int      // passed tests without subtests, and subtests, that used the RDMA device
	Verbs    []Shown  // what its tests showed
	Took     time.Duration
	Output   []string // what its processes wrote, each line after its role
}

// Skip is a test that was skipped, and what it wrote: the reason is its last line.
type Skip struct {
	Test string
	Log  []string
}

// Shown is what a test showed of a verb.
type Shown struct {
	Verb    string
	Outcome record.Outcome
	Why     string // the reason of a skip
}

// Judge collects the records of one run. It is not safe for concurrent use.
type Judge struct {
	plan     plan.Plan
	seq      int
	stage    plan.Kind // last of Boot, Ready, Done that arrived
	current  *item
	items    []*item
	problems []string
}

// item is an item of the plan while its records arrive.
type item struct {
	plan.Item
	began, ended bool
	exited       map[string]bool
	output       map[string][]string // by role
	tests        tests
	Result
}

// New gives a judge for a run of the plan.
func New(p plan.Plan) *Judge { return &Judge{plan: p} }

// Line takes one line from the guest's report port and gives the record in it; ok
// is false when it is none of this run.
func (j *Judge) Line(line []byte) (r plan.Record, ok bool) {
	if err := json.Unmarshal(line, &r); err != nil {
		j.problem("line %.80q of the guest's report is no record: %v", line, err)
		return r, false
	}
	if r.Nonce != j.plan.Nonce {
		j.problem("record %d is of another run", r.Seq)
		return r, false
	}
	j.seq++
	if r.Seq != j.seq {
		j.problem("record %d came after record %d: the report has lost lines", r.Seq, j.seq-1)
		j.seq = r.Seq
	}
	j.record(r)
	return r, true
}

func (j *Judge) problem(format string, args ...any) {
	j.problems = append(j.problems, fmt.Sprintf(format, args...))
}

func (j *Judge) record(r plan.Record) {
	switch r.Kind {
	case plan.Boot, plan.Ready, plan.Done:
		j.stage = r.Kind
	case plan.Broken:
		j.problem("the guest gave up: %s", r.Text)
	case plan.Note:
	case plan.Begin:
		j.begin(r)
	case plan.Output, plan.Exit, plan.End:
		if j.current == nil || j.current.Item.Name != r.Item {
			j.problem("a record of kind %q for %q, which is not running", r.Kind, r.Item)
			return
		}
		j.current.record(r)
		if r.Kind == plan.End {
			j.current = nil
		}
	default:
		j.problem("record %d has the unknown kind %q", r.Seq, r.Kind)
	}
}

func (j *Judge) begin(r plan.Record) {
	n := len(j.items)
	if j.stage != plan.Ready {
		j.problem("%q began before the device was ready", r.Item)
	}
	if j.current != nil {
		j.problem("%q began before %q ended", r.Item, j.current.Item.Name)
	}
	if n >= len(j.plan.Items) || j.plan.Items[n].Name != r.Item {
		j.problem("%q began, which is not the plan's next item", r.Item)
		return
	}
	j.current = newItem(j.plan.Items[n])
	j.current.began = true
	j.items = append(j.items, j.current)
}

// Finish gives the verdict after the last line: the result of every item of the
// plan, and the problems that belong to no item. The run was good when there are no
// problems in either.
func (j *Judge) Finish() (results []Result, problems []string) {
	for i, it := range j.plan.Items {
		if i == len(j.items) {
			j.items = append(j.items, newItem(it))
		}
		results = append(results, j.items[i].finish())
	}
	problems = j.problems
	if j.stage != plan.Done {
		last := "nothing arrived"
		if j.stage != "" {
			last = fmt.Sprintf("the last stage was %q", j.stage)
		}
		problems = append(problems, "the guest did not finish: "+last)
	}
	return results, problems
}

func newItem(p plan.Item) *item {
	return &item{
		Item: p, exited: map[string]bool{}, output: map[string][]string{},
		Result: Result{Name: p.Name},
	}
}

func (i *item) problem(format string, args ...any) {
	i.Problems = append(i.Problems, fmt.Sprintf(format, args...))
}

func (i *item) record(r plan.Record) {
	switch r.Kind {
	case plan.Output:
		i.output[r.Role] = append(i.output[r.Role], r.Text)
		if i.Tests {
			i.tests.line(r.Text)
		}
		i.Output = append(i.Output, r.Role+": "+strings.TrimPrefix(r.Text, marker))
	case plan.Exit:
		i.exit(r)
	case plan.End:
		i.ended = true
		i.Took = time.Duration(r.Millis) * time.Millisecond
	}
}

func (i *item) exit(r plan.Record) {
	for _, p := range i.Procs {
		if p.Role != r.Role || i.exited[r.Role] {
			continue
		}
		i.exited[r.Role] = true
		switch {
		case r.Text != "":
			i.problem("%s: %s", r.Role, r.Text)
		case r.Status != p.Exit:
			i.problem("%s: exit status %d, want %d", r.Role, r.Status, p.Exit)
		}
		return
	}
	i.problem("exit of %q, which was not running", r.Role)
}

func (i *item) finish() Result {
	switch {
	case !i.began:
		i.problem("did not run")
		return i.Result
	case !i.ended:
		i.problem("began and did not end")
	}
	for _, p := range i.Procs {
		if !i.exited[p.Role] {
			i.problem("%s: no exit status", p.Role)
		}
		all := strings.Join(i.output[p.Role], "\n")
		for _, want := range p.Wants {
			if !strings.Contains(all, want) {
				i.problem("%s: output lacks %q", p.Role, want)
			}
		}
	}
	if i.Tests {
		i.tests.finish(&i.Result, !i.NoDevice)
	}
	return i.Result
}
