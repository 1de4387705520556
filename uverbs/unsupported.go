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
	return nil, unsupported()
}

// Details has nothing.
func (s *System) Details(Device) Details { return Details{NUMANode: -1} }

// GIDs returns a [verbs.UnsupportedError].
func (s *System) GIDs(string, int) ([]SeenGID, error) { return nil, unsupported() }

// NetNSMode is not known.
func (s *System) NetNSMode() string { return "" }

// CMNode returns a [verbs.UnsupportedError].
func (s *System) CMNode() (Node, error) { return Node{}, unsupported() }

func unsupported() error {
	return &verbs.UnsupportedError{Feature: "RDMA devices of the kernel", Missing: runtime.GOOS, Since: "linux 5.10"}
}
