package ps

import (
	"bufio"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
)

// SaveFile writes a snapshot to a file. It writes another file beside it first, syncs
// that and renames it: after an error, or a crash at any moment, the file is what it was
// before, or whole. What a process that was killed has left beside it is removed, but on
// Windows.
func (s *Shard) SaveFile(path string) error {
	return s.saveFile(path, func(f *os.File) io.Writer { return f })
}

// saveFile is SaveFile with what stands between it and the disk.
func (s *Shard) saveFile(path string, to func(*os.File) io.Writer) (err error) {
	dir, base := filepath.Dir(path), filepath.Base(path)
	removeLeft(dir, base)
	f, release, err := createPart(dir, base)
	if err != nil {
		return errors.Wrap(err, "ps: save a snapshot")
	}
	defer release()
	renamed := false
	defer func() {
		if err != nil && !renamed {
			f.Close()
			os.Remove(f.Name())
			err = errors.WithMessagef(err, "ps: save a snapshot: %q stays as it was: make room, or save elsewhere", path)
		}
	}()
	w := bufio.NewWriterSize(to(f), 1<<20)
	if err := s.Snapshot(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	renamed = true
	return errors.WithMessagef(syncDir(dir), "ps: save a snapshot: %q is the new one, and may be the old one after a crash", path)
}

// RestoreFile restores the shard from a file of SaveFile, as Restore.
func (s *Shard) RestoreFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return errors.Wrap(err, "ps: restore a snapshot")
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	err = s.Restore(r)
	if e, ok := err.(*SnapshotError); ok { //nolint:errorlint // Restore does not wrap it
		e.Path = path
	}
	return err
}
