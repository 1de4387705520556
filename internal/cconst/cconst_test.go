package cconst

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadAndDiff(t *testing.T) {
	file := filepath.Join(t.TempDir(), "constants.tsv")
	if err := os.WriteFile(file, []byte("A\t1\nB\t32\nC\t3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := Diff(map[string]uint64{"A": 1, "B": 32, "C": 3}, want); d != nil {
		t.Errorf("equal: %v", d)
	}
	got := Diff(map[string]uint64{"A": 1, "B": 2, "D": 4}, want)
	if d := cmp.Diff([]string{"B is 0x20 in C, 0x2 in Go", "C: no Go constant was compared with it", "D: not in the table of C constants"}, got); d != "" {
		t.Error(d)
	}
	if err := os.WriteFile(file, []byte("A\tone\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil {
		t.Error("a value that is no number was read")
	}
	if _, err := Load(file + "x"); err == nil {
		t.Error("a file that is not there was read")
	}
}
