//go:build !linux

package testmodel

import (
	"runtime"
	"testing"

	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

func mlx5On(t testing.TB, _ *sim.Device) verbs.Device {
	t.Skipf("the model stands behind the Linux verbs ABI, which %s does not have", runtime.GOOS)
	return nil
}
