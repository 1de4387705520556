//go:build !linux

package uverbs

import (
	"runtime"

	"github.com/byteexpress/byteexpress/verbs"
)

// System is the kernel; this system has no verbs.
type System struct {
	SysRoot, DevRoot string
}

// Devices returns a [verbs.UnsupportedError].
func (s *System) Devices() ([]Device, error) {
	return nil, &verbs.UnsupportedError{Feature: "RDMA devices of the kernel", Missing: runtime.GOOS, Since: "linux 5.10"}
}
