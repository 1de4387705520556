//go:build unix && !solaris && !aix

package ps

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// createPart makes a new file beside one of that name. Until release, it is locked by
// another descriptor: so removeLeft knows it from one whose writer was killed, even when
// it was closed. On a file system without locks removeLeft does nothing.
func createPart(dir, base string) (f *os.File, release func(), err error) {
	for {
		if f, err = os.CreateTemp(dir, base+".*.part"); err != nil {
			return nil, nil, err
		}
		lock, err := os.Open(f.Name())
		if err == nil && unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != unix.EWOULDBLOCK && isStill(f) {
			return f, func() { lock.Close() }, nil
		}
		lock.Close()
		f.Close()
		os.Remove(f.Name())
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, nil, err
		}
		// A removeLeft was quicker.
	}
}

// isStill reports whether a file's name is still that of the file.
func isStill(f *os.File) bool {
	open, err := f.Stat()
	named, err2 := os.Stat(f.Name())
	return err == nil && err2 == nil && os.SameFile(open, named)
}

// removeLeft removes the files of createPart whose writers are gone.
func removeLeft(dir, base string) {
	names, _ := os.ReadDir(dir)
	for _, e := range names {
		rest, ours := strings.CutPrefix(e.Name(), base+".")
		number, part := strings.CutSuffix(rest, ".part")
		if _, err := strconv.ParseUint(number, 10, 64); err != nil || !ours || !part || !e.Type().IsRegular() {
			continue
		}
		name := filepath.Join(dir, e.Name())
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			os.Remove(name)
		}
		f.Close()
	}
}
