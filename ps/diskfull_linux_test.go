package ps

import (
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/internal/testprocess"
)

// wideShard is a shard of some rows of 64 values.
func wideShard(t *testing.T, rows uint64) *Shard {
	s, err := NewShard(Config{Dim: 64, LearningRate: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for key := range rows {
		if _, err := s.load(key, make([]float32, 64)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestFullFileSystem: a file system is full, or a file may not become so long: the save
// says so, the file stays what it was, nothing is left beside it, and when there is room
// the next one is made.
func TestFullFileSystem(t *testing.T) {
	big, small := wideShard(t, 20000), wideShard(t, 9)
	for _, tt := range []struct {
		desc string
		fill func(t *testing.T, dir string) (empty func())
		want error
	}{
		{"file system", func(t *testing.T, dir string) func() {
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
				t.Skipf("a small file system needs CAP_SYS_ADMIN: mount: %v", err)
			}
			t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
			return func() {
				if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
					t.Fatal(err)
				}
			}
		}, unix.ENOSPC},
		{"limit", func(t *testing.T, dir string) func() {
			var was unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
				t.Fatal(err)
			}
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 2 << 20, Max: was.Max}); err != nil {
				t.Fatal(err)
			}
			back := func() { unix.Setrlimit(unix.RLIMIT_FSIZE, &was) }
			t.Cleanup(back)
			return back
		}, unix.EFBIG},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			dir := t.TempDir()
			empty := tt.fill(t, dir)
			path := filepath.Join(dir, "shard")
			if err := small.SaveFile(path); err != nil {
				t.Fatal(err)
			}
			restored := func(rows int) {
				t.Helper()
				s := wideShard(t, 0)
				if err := s.RestoreFile(path); err != nil || s.Rows() != rows {
					t.Errorf("%v, %d rows of %d", err, s.Rows(), rows)
				}
				if left, _ := os.ReadDir(dir); len(left) != 1 {
					t.Errorf("left in the directory: %v", left)
				}
			}
			for range 3 {
				if err := big.SaveFile(path); !errors.Is(err, tt.want) {
					t.Errorf("save: %v", err)
				}
				restored(9)
			}
			empty()
			if err := big.SaveFile(path); err != nil {
				t.Error(err)
			}
			restored(20000)
		})
	}
}

// saverEnv makes the test binary save a shard again and again, with a row more each time, to
// the file of this name.
const saverEnv = "PS_TEST_SAVER"

func init() {
	path := os.Getenv(saverEnv)
	if path == "" {
		return
	}
	s, err := NewShard(Config{Dim: 64, LearningRate: 1})
	if err != nil {
		log.Fatal(err)
	}
	for key := uint64(0); ; key++ {
		if _, err := s.load(key, make([]float32, 64)); err != nil {
			log.Fatal(err)
		}
		if key > 5000 {
			if err := s.SaveFile(path); err != nil {
				log.Fatal(err)
			}
			fmt.Println(key + 1)
		}
	}
}

// TestSaverKilled: a process is killed at any moment while it saves: the file is whole, and
// has what the last save that returned had, or the one under way. The next save removes
// what is left.
func TestSaverKilled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "shard")
	left := 0
	for range 20 {
		p := testprocess.New(t, saverEnv, path)
		p.Start()
		saves, rows := 1+rand.IntN(3), 0
		for range saves {
			if _, err := fmt.Sscan(p.Line(), &rows); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Duration(rand.IntN(6000)) * time.Microsecond)
		p.Kill()
		s := wideShard(t, 0)
		if err := s.RestoreFile(path); err != nil || s.Rows() < rows {
			t.Fatalf("%v; %d rows, %d were saved", err, s.Rows(), rows)
		}
		names, _ := os.ReadDir(dir)
		left += len(names) - 1
		if len(names) > 2 {
			t.Errorf("what earlier ones left is there: %v", names)
		}
	}
	if left == 0 {
		t.Error("control: none was killed while it wrote")
	}
}
