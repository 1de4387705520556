//go:build !linux

package be

import "errors"

// pinThread is for Linux only.
func pinThread(int) error { return errors.ErrUnsupported }
