//go:build linux

package mlx5_test

import (
	"testing"

	"github.com/byteexpress/byteexpress/provider/internal/kdevtest"
)

// The tests that every kernel device has to pass.
func TestKernelDevice(t *testing.T) { kdevtest.Run(t, &rig) }
