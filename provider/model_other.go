//go:build !linux

package provider

import (
	"runtime"

	"github.com/byteexpress/byteexpress/verbs"
)

// openModel is not possible: the model stands behind the Linux verbs ABI.
func openModel(name string) (verbs.Device, error) {
	return nil, &verbs.OpError{Op: "open", Device: name, Remedy: "use " + simulatedDefault,
		Err: &verbs.UnsupportedError{Feature: "the model of an mlx5 NIC", Missing: runtime.GOOS}}
}
