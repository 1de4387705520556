package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/byteexpress/byteexpress/internal/lab/judge"
	"github.com/byteexpress/byteexpress/internal/lab/record"
)

// The page is what the records give: nobody wrote into it.
func TestTable(t *testing.T) {
	t.Chdir("..")
	want, err := table()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(tablePath)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("%s is not what `go run ./lab -table` makes:\n%s", tablePath, d)
	}
}

// A run that sees something else than the table says is not good.
func TestVerbsAgainstRecord(t *testing.T) {
	t.Chdir(t.TempDir())
	shown := func(o record.Outcome) []judge.Result {
		return []judge.Result{{Verbs: []judge.Shown{{Verb: "CQ: resize", Outcome: o}}}}
	}
	v := &view{kernel: kernels[0], release: "6.1.0", record: true}
	if p := v.verbs(shown(record.Works)); len(p) > 0 {
		t.Fatal(p)
	}
	v.record = false
	if p := v.verbs(shown(record.Works)); len(p) > 0 {
		t.Errorf("the same again: %q", p)
	}
	if p := v.verbs(shown(record.Unsupported)); len(p) != 1 || !strings.Contains(p[0], "CQ: resize: unsupported, recorded as: works") {
		t.Errorf("problems %q, want the contradiction", p)
	}
	v.kernel = kernels[1]
	if p := v.verbs(shown(record.Unsupported)); len(p) > 0 {
		t.Errorf("a kernel without a record: %q", p)
	}
}
