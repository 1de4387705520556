package house

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	goBlock   = regexp.MustCompile("(?s)\n```go\n(.*?)```\n")
	textBlock = regexp.MustCompile("(?s)\n```text\n(.*?)```\n")
)

// The program in README.md builds against this module, and prints what README.md
// says that it prints: the first text block after it.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a command; left out with -short")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	at := goBlock.FindSubmatchIndex(readme)
	if at == nil {
		t.Fatal("README.md has no Go program")
	}
	want := textBlock.FindSubmatch(readme[at[1]-1:])
	if want == nil {
		t.Fatal("README.md does not say what its program prints")
	}
	// An overlay puts the program into the module, without writing there.
	dir := t.TempDir()
	write(t, dir, "main.go", string(readme[at[2]:at[3]]))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(root, "internal", "house", "readme", "main.go"): filepath.Join(dir, "main.go"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "overlay.json", string(overlay))
	cmd := exec.Command("go", "run", "-overlay", filepath.Join(dir, "overlay.json"), "./internal/house/readme")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != strings.TrimSpace(string(want[1])) {
		t.Errorf("the program prints %q, README.md says %q", got, want[1])
	}
}
