//go:build unix && !solaris && !aix

package ps

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// TestKilledSave: what a process that was killed while it saved has left is removed by the
// next save, and what another one writes at the moment is not.
func TestKilledSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[a]*") // no pattern
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "shard")
	for _, name := range []string{path + ".123.part", path + ".18446744073709551615.part"} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{path + ".part", path + "2.123.part", path + ".123", path + ".x.part"} { // of somebody else
		if err := os.WriteFile(name, []byte("other"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	begun, goOn := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	slow := filled(t, Config{}, 9)
	wg.Go(func() {
		if err := slow.saveFile(path, func(f *os.File) io.Writer {
			close(begun)
			<-goOn
			return f
		}); err != nil {
			t.Error(err)
		}
	})
	<-begun
	s := filled(t, Config{}, 100)
	for range 10 {
		wg.Go(func() {
			for range 10 {
				if err := s.SaveFile(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if err := s.SaveFile(path); err != nil {
		t.Error(err)
	}
	close(goOn)
	wg.Wait()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if want := []string{"shard", "shard.123", "shard.part", "shard.x.part", "shard2.123.part"}; !slices.Equal(names, want) {
		t.Errorf("left are %q, want %q", names, want)
	}
	if err := newTestShard(t, Config{}).RestoreFile(path); err != nil {
		t.Error(err)
	}
}
