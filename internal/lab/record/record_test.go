package record

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func run(kernel string, tests ...[3]string) Run {
	r := Run{Kernel: kernel, Arch: "amd64", Device: "rxe"}
	for _, t := range tests {
		r.Add(t[0], Outcome(t[1]), t[2])
	}
	return r
}

// two are runs in which one kernel can more than the other.
func two() (newer, older Run) {
	newer = run("6.12.1-amd64", [3]string{"CQ: create", "works"}, [3]string{"SRQ: resize", "unsupported", "no resize in kernel 6.12.1-amd64"},
		[3]string{"SRQ: resize", "works"}, [3]string{"QP: flush", "works"})
	older = run("6.1.0-amd64", [3]string{"CQ: create", "works"}, [3]string{"CQ: create", "works"},
		[3]string{"SRQ: resize", "unsupported", "no resize in kernel 6.1.0-amd64"}, [3]string{"QP: flush", "kernel fault", "it locks up"})
	return newer, older
}

func TestMarkdown(t *testing.T) {
	newer, older := two()
	newer.Add("QP: read", Fails, "")
	newer.Add("QP: read", Works, "")
	want := `| verb | rxe, 6.1.0 on amd64 | rxe, 6.12.1 on amd64 |
| --- | --- | --- |
| CQ: create | works | works |
| QP: flush | kernel fault (1) | works |
| QP: read | not tested | fails |
| SRQ: resize | unsupported (2) | works (2) |

1. it locks up
2. no resize in this kernel
`
	if d := cmp.Diff(want, Markdown([]Run{newer, older})); d != "" {
		t.Error(d)
	}
}

func TestCompare(t *testing.T) {
	newer, older := two()
	newer.Add("MR: advise", Works, "")
	older.Add("QP: read", Works, "")
	contradictions, added := newer.Compare(older)
	if d := cmp.Diff([]string{"QP: flush: works, recorded as: kernel fault", "SRQ: resize: works, recorded as: unsupported", "QP: read: not tested, recorded as: works"}, contradictions); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"MR: advise"}, added); d != "" {
		t.Error(d)
	}
}

func TestKeep(t *testing.T) {
	newer, older := two()
	older.Add("MR: advise", Unsupported, "no advice")
	newer.Keep(older)
	if v := newer.Verbs["MR: advise"]; v.Outcome != Unsupported || len(newer.Verbs) != 4 {
		t.Errorf("verbs %+v", newer.Verbs)
	}
	if newer.Verbs["QP: flush"].Outcome != Works {
		t.Error("the old outcome took the place of the new one")
	}
	var empty Run
	if empty.Keep(older); len(empty.Verbs) != 4 {
		t.Errorf("verbs %+v", empty.Verbs)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	newer, older := two()
	for name, r := range map[string]Run{"a.json": newer, "b.json": older} {
		if err := r.Write(filepath.Join(dir, "verbs", name)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadAll(filepath.Join(dir, "verbs"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Run{newer, older}, got); d != "" {
		t.Error(d)
	}
	if _, err := Read(filepath.Join(dir, "none.json")); err == nil {
		t.Error("a file that is not there was read")
	}
}
