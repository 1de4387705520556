package report

import (
	"io"
	"os"
)

// partial names the file that is written first, beside the one that is meant.
func partial(path string) string { return path + ".part" }

// CanSave reports whether a file can be written there, before a measurement is
// spent on it.
func CanSave(path string) error {
	f, err := os.Create(partial(path))
	if err != nil {
		return err
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

// save writes a file in one step: a reader finds what was there before, or all of it.
func save(path string, write func(io.Writer) error) error {
	tmp := partial(path)
	f, err := os.Create(tmp)
	if err != nil {
		return err
	}
	err = write(f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return err
}
