//go:build !linux

package main

import "os"

// newScratch makes a directory for one run. One that was killed leaves it here.
func newScratch() (string, error) { return os.MkdirTemp("", "byteexpress-run-") }
