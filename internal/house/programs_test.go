package house

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// isProgram reports whether a file starts as programs of Linux, Windows and
// macOS do: ELF, MZ, Mach-O of either byte order, and Mach-O of several machines.
func isProgram(head []byte) bool {
	for _, magic := range []string{"\x7fELF", "MZ", "\xcf\xfa\xed\xfe", "\xfe\xed\xfa\xcf", "\xca\xfe\xba\xbe"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return false
}

// No program that somebody built is among the files that git keeps.
func TestNoExecutables(t *testing.T) {
	root := filepath.Join("..", "..")
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("git ls-files: %v: this is no git checkout", err)
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // deleted, and not yet committed
		}
		if isProgram(b) {
			t.Errorf("%s: an executable is in git: remove it, and name it in .gitignore", name)
		}
	}
}

// Negative control: this test's own program is one.
func TestIsProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if !isProgram(b) {
		t.Errorf("%x: not taken for an executable", b[:8])
	}
	if isProgram([]byte("package house\n")) {
		t.Error("text is taken for an executable")
	}
}
