package main

import (
	"os"
	"runtime/pprof"

	"github.com/pkg/errors"
)

// profiled runs f with a CPU profile written to path, if there is one.
func profiled(path string, f func() error) (err error) {
	if path == "" {
		return f()
	}
	w, err := os.Create(path)
	if err != nil {
		return errors.Wrap(err, "--cpuprofile")
	}
	defer func() {
		if closeErr := w.Close(); err == nil {
			err = errors.Wrap(closeErr, "--cpuprofile")
		}
	}()
	if err := pprof.StartCPUProfile(w); err != nil {
		return errors.Wrap(err, "--cpuprofile")
	}
	defer pprof.StopCPUProfile()
	return f()
}
