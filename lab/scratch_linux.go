package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pkg/errors"
)

// scratchName starts the names of the directories of runs.
const scratchName = "byteexpress-run-"

// newScratch makes a directory for one run, and removes those of runs that were killed
// and so could not: nobody holds them any more.
func newScratch() (string, error) {
	old, err := filepath.Glob(filepath.Join(os.TempDir(), scratchName+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range old {
		if fd, err := hold(dir); err == nil {
			os.RemoveAll(dir)
			syscall.Close(fd)
		}
	}
	const unheld = "new-" // it has its name only when it is held
	made, err := os.MkdirTemp("", unheld+scratchName)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(os.TempDir(), strings.TrimPrefix(filepath.Base(made), unheld))
	if _, err = hold(made); err == nil { // until this process ends
		err = os.Rename(made, dir)
	}
	if err != nil {
		os.RemoveAll(made)
	}
	return dir, err
}

// hold locks a directory for as long as the descriptor is open, or fails.
func hold(dir string) (fd int, err error) {
	fd, err = syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return -1, errors.Wrap(err, dir)
	}
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		syscall.Close(fd)
		return -1, errors.Wrap(err, dir)
	}
	return fd, nil
}
