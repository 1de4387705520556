package judge

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/byteexpress/byteexpress/internal/lab/plan"
	"github.com/byteexpress/byteexpress/internal/lab/record"
)

const nonce = "N1"

// twoItems has a suite and a scenario.
func twoItems() plan.Plan {
	return plan.Plan{Nonce: nonce, Items: []plan.Item{
		{Name: "uverbs", Tests: true, Limit: time.Second, Procs: []plan.Proc{{Role: "test"}}},
		{Name: "pair", Limit: time.Second, Procs: []plan.Proc{
			{Role: "server", Wants: []string{"served 1"}},
			{Role: "client", Exit: 3},
		}},
	}}
}

// goodRun is what a guest sends when all of twoItems went well.
func goodRun() []plan.Record {
	records := []plan.Record{
		{Kind: plan.Boot}, {Kind: plan.Ready},
		{Kind: plan.Begin, Item: "uverbs"},
	}
	for _, l := range []string{
		"\x16=== RUN   TestOpen",
		"    open_test.go:9: testdev: device rxe0",
		"\x16--- PASS: TestOpen (0.01s)",
		"\x16=== RUN   TestTable",
		"\x16=== RUN   TestTable/one",
		"\x16--- PASS: TestTable (0.00s)",
		"\x16    --- PASS: TestTable/one (0.00s)",
		"\x16PASS",
	} {
		records = append(records, plan.Record{Kind: plan.Output, Item: "uverbs", Role: "test", Text: l})
	}
	return append(records,
		plan.Record{Kind: plan.Exit, Item: "uverbs", Role: "test"},
		plan.Record{Kind: plan.End, Item: "uverbs", Millis: 10},
		plan.Record{Kind: plan.Begin, Item: "pair"},
		plan.Record{Kind: plan.Output, Item: "pair", Role: "server", Text: "I served 1 client"},
		plan.Record{Kind: plan.Exit, Item: "pair", Role: "client", Status: 3},
		plan.Record{Kind: plan.Exit, Item: "pair", Role: "server"},
		plan.Record{Kind: plan.End, Item: "pair", Millis: 10},
		plan.Record{Kind: plan.Done},
	)
}

// lines is the records as they come over the wire.
func lines(records []plan.Record) [][]byte {
	var buf bytes.Buffer
	w := plan.NewWriter(&buf, nonce)
	for _, r := range records {
		w.Send(r)
	}
	return bytes.SplitAfter(bytes.TrimSuffix(buf.Bytes(), []byte("\n")), []byte("\n"))
}

// verdict gives every problem of a run, those of items after the item's name.
func verdict(t *testing.T, lines [][]byte) []string {
	t.Helper()
	j := New(twoItems())
	for _, l := range lines {
		j.Line(l)
	}
	results, all := j.Finish()
	if len(results) != len(twoItems().Items) {
		t.Fatalf("%d results for %d items", len(results), len(twoItems().Items))
	}
	for _, r := range results {
		for _, p := range r.Problems {
			all = append(all, r.Name+": "+p)
		}
	}
	return all
}

func TestGoodRun(t *testing.T) {
	if problems := verdict(t, lines(goodRun())); len(problems) > 0 {
		t.Errorf("problems in a good run: %q", problems)
	}
	j := New(twoItems())
	for _, l := range lines(goodRun()) {
		if _, ok := j.Line(l); !ok {
			t.Errorf("line %q refused", l)
		}
	}
	results, _ := j.Finish()
	if r := results[0]; len(r.Passed) != 3 || r.OnDevice != 1 || r.Took != 10*time.Millisecond {
		t.Errorf("suite: passed %q, %d on the device, took %v; want 3, 1, 10ms", r.Passed, r.OnDevice, r.Took)
	}
}

// Whatever a run loses, the verdict must not be good.
func TestLostRecords(t *testing.T) {
	all := lines(goodRun())
	for i := range all {
		if p := verdict(t, all[:i]); len(p) == 0 {
			t.Errorf("a run that broke off after %d of %d records is good", i, len(all))
		}
		if i == len(all)-1 {
			break // that one was the same as broken off
		}
		if p := verdict(t, slices.Delete(slices.Clone(all), i, i+1)); len(p) == 0 {
			t.Errorf("a run without record %d is good: %s", i+1, all[i])
		}
		half := slices.Clone(all)
		half[i] = half[i][:len(half[i])/2]
		if p := verdict(t, half); len(p) == 0 {
			t.Errorf("a run with half of record %d is good: %s", i+1, all[i])
		}
	}
}

// edit changes the record that match finds first; a nil result drops it.
func edit(match func(plan.Record) bool, change func(plan.Record) []plan.Record) []plan.Record {
	all := goodRun()
	i := slices.IndexFunc(all, match)
	return slices.Replace(all, i, i+1, change(all[i])...)
}

func text(s string) func(plan.Record) bool {
	return func(r plan.Record) bool { return strings.Contains(r.Text, s) }
}

func kind(k plan.Kind, item, role string) func(plan.Record) bool {
	return func(r plan.Record) bool { return r.Kind == k && r.Item == item && r.Role == role }
}

func say(lines ...string) func(plan.Record) []plan.Record {
	return func(r plan.Record) []plan.Record {
		var out []plan.Record
		for _, l := range lines {
			r.Text = l
			out = append(out, r)
		}
		return out
	}
}

func drop(plan.Record) []plan.Record { return nil }

func status(n int, why string) func(plan.Record) []plan.Record {
	return func(r plan.Record) []plan.Record {
		r.Status, r.Text = n, why
		return []plan.Record{r}
	}
}

func without(item string) []plan.Record {
	return slices.DeleteFunc(goodRun(), func(r plan.Record) bool { return r.Item == item })
}

func TestBadRuns(t *testing.T) {
	for _, tc := range []struct {
		desc    string
		records []plan.Record
		want    string
	}{
		{"suite missing", without("uverbs"), "uverbs: did not run"},
		{"last item missing", without("pair"), "pair: did not run"},
		{"kernel panic while a suite runs", goodRun()[:6], "uverbs: began and did not end"},
		{"no records at all", nil, "the guest did not finish: nothing arrived"},
		{"no done", goodRun()[:len(goodRun())-1], "the guest did not finish"},
		{"guest gives up", []plan.Record{{Kind: plan.Boot}, {Kind: plan.Broken, Text: "no rdma_rxe"}}, "the guest gave up: no rdma_rxe"},
		{"items before the device", slices.DeleteFunc(goodRun(), func(r plan.Record) bool { return r.Kind == plan.Ready }), "before the device was ready"},
		{"an item too many", append(goodRun(), plan.Record{Kind: plan.Begin, Item: "more"}), "not the plan's next item"},
		{"an item twice", append(goodRun(), plan.Record{Kind: plan.Begin, Item: "pair"}), "not the plan's next item"},
		{"output of nobody", edit(kind(plan.Begin, "pair", ""), drop), "which is not running"},
		{"unknown kind", append(goodRun(), plan.Record{Kind: "hello"}), "unknown kind"},

		{"exit status", edit(kind(plan.Exit, "uverbs", "test"), status(1, "")), "uverbs: test: exit status 1, want 0"},
		{"exit status 0 where another is due", edit(kind(plan.Exit, "pair", "client"), status(0, "")), "pair: client: exit status 0, want 3"},
		{"timeout", edit(kind(plan.Exit, "pair", "server"), status(-1, "still running after 3m0s")), "pair: server: still running after 3m0s"},
		{"a process without exit", edit(kind(plan.Exit, "pair", "server"), drop), "pair: server: no exit status"},
		{"a suite without exit", edit(kind(plan.Exit, "uverbs", "test"), drop), "uverbs: test: no exit status"},
		{"output missing", edit(text("I served 1"), drop), `pair: server: output lacks "served 1"`},

		{"no test", edit(text("testdev"), drop), "no test passed that uses the device (3 passed"},
		{"no test at all", slices.DeleteFunc(goodRun(), text("---")), "no test passed that uses the device (0 passed"},
		{"only subtest passed", edit(text("--- PASS: TestOpen"), say("\x16    --- PASS: TestOpen/x (0.00s)")), "no test passed that uses the device"},
		{"all subtests skipped", edit(text("--- PASS: TestOpen"), say("\x16--- PASS: TestOpen (0.01s)", "\x16    --- SKIP: TestOpen/x (0.00s)")), "no test passed that uses the device"},
		{"no last word", edit(text("\x16PASS"), drop), "did not end with PASS"},
		{"last word of a test", edit(text("\x16PASS"), say("PASS")), "did not end with PASS"},
		{"fail after pass", edit(text("\x16PASS"), say("\x16PASS", "\x16FAIL")), "did not end with PASS"},
		{"test failed", edit(text("--- PASS: TestTable ("), say("\x16--- FAIL: TestTable (0.00s)")), "uverbs: test failed: TestTable"},
		{"skipped for want of a device", edit(text("--- PASS: TestTable ("), say(
			"    x_test.go:1: RDMA_DEVICE is not set: ...", "\x16--- SKIP: TestTable/one (0.00s)")), "test TestTable/one was skipped"},
		{"result in the middle of a line", edit(text("--- PASS: TestTable ("), say("no newline\x16--- FAIL: TestTable (0.00s)")), "uverbs: test failed: TestTable"},
		{"a pass that the test printed itself", edit(text("--- PASS: TestOpen"), say("--- PASS: TestOpen (0.01s)")), "no test passed that uses the device"},
	} {
		if problems := verdict(t, lines(tc.records)); !strings.Contains(strings.Join(problems, "\n"), tc.want) {
			t.Errorf("%s: problems %q, want one with %q", tc.desc, problems, tc.want)
		}
	}
}

func TestOtherRun(t *testing.T) {
	j := New(twoItems())
	other := twoItems()
	other.Nonce = "N2"
	if _, ok := New(other).Line(lines(goodRun())[0]); ok {
		t.Error("a record of another run was taken")
	}
	if _, ok := j.Line([]byte("[    0.000000] Linux version")); ok {
		t.Error("a line of the kernel was taken for a record")
	}
	if _, problems := j.Finish(); len(problems) < 2 {
		t.Errorf("problems %q, want the line and the missing end", problems)
	}
}

// A skip for another reason is counted and shown, not a failure.
func TestOtherSkip(t *testing.T) {
	j := New(twoItems())
	for _, l := range lines(edit(text("--- PASS: TestTable/one"), say(
		"\x16=== NAME  TestTable/one", "    x_test.go:1: no atomics on this device", "\x16    --- SKIP: TestTable/one (0.00s)"))) {
		j.Line(l)
	}
	results, problems := j.Finish()
	if len(problems)+len(results[0].Problems) > 0 {
		t.Errorf("problems %q %q", problems, results[0].Problems)
	}
	want := []Skip{{"TestTable/one", []string{"    x_test.go:1: no atomics on this device"}}}
	if d := cmp.Diff(want, results[0].Skipped); d != "" || !slices.Contains(results[0].Passed, "TestTable") {
		t.Errorf("skipped (-want +got):\n%s\npassed %q", d, results[0].Passed)
	}
}

// What a test names it shows by its end; one skipped for a reason of its own shows
// nothing, nor does one that never ended, or ran on a simulated device.
func TestVerbs(t *testing.T) {
	j := New(twoItems())
	for _, l := range lines(edit(text("--- PASS: TestTable ("), say(
		"\x16=== RUN   TestA", "    a_test.go:1: testdev: device rxe0", "    a_test.go:1: testdev: verb: PD: allocate", "    a_test.go:1: testdev: verb: CQ: create",
		"\x16=== RUN   TestA/sub", "    a_test.go:2: testdev: verb: CQ: resize", "    a_test.go:3: testdev: unsupported: no resize",
		"\x16    --- SKIP: TestA/sub (0.00s)", "\x16=== NAME  TestA", "\x16--- PASS: TestA (0.00s)",
		"\x16=== RUN   TestB", "    b_test.go:1: testdev: device rxe0", "    b_test.go:1: testdev: verb: QP: flush", "    b_test.go:2: testdev: kernel fault: it locks up", "\x16--- SKIP: TestB (0.00s)",
		"\x16=== RUN   TestSim", "    a_test.go:1: testdev: verb: MW: bind", "\x16--- PASS: TestSim (0.00s)",
		"\x16=== RUN   TestC", "    a_test.go:1: testdev: device rxe0", "    c_test.go:1: testdev: verb: QP: read", "\x16--- FAIL: TestC (0.00s)",
		"\x16=== RUN   TestD", "    a_test.go:1: testdev: device rxe0", "    c_test.go:1: testdev: verb: QP: write", "    c_test.go:2: no mood", "\x16--- SKIP: TestD (0.00s)",
		"\x16=== RUN   TestE", "    c_test.go:1: testdev: verb: QP: send",
	))) {
		j.Line(l)
	}
	results, _ := j.Finish()
	want := []Shown{
		{"CQ: resize", record.Unsupported, "no resize"},
		{"PD: allocate", record.Works, ""}, {"CQ: create", record.Works, ""},
		{"QP: flush", record.Fault, "it locks up"},
		{"QP: read", record.Fails, ""},
	}
	if !slices.Equal(results[0].Verbs, want) {
		t.Errorf("shown %+v, want %+v", results[0].Verbs, want)
	}
}

// A suite about the architecture needs no device.
func TestNoDevice(t *testing.T) {
	p := twoItems()
	p.Items[0].NoDevice = true
	j := New(p)
	for _, l := range lines(edit(text("testdev: device"), drop)) {
		j.Line(l)
	}
	results, problems := j.Finish()
	if len(problems)+len(results[0].Problems) > 0 {
		t.Errorf("problems %q %q", problems, results[0].Problems)
	}
}
