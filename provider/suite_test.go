//go:build linux

package provider_test

import (
	"testing"

	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/provider/internal/kdevtest"
	"github.com/byteexpress/byteexpress/verbs"
)

// TestSimulatedIsLikeKernel runs on a simulated NIC the very tests that every device
// of the kernel has to pass: what is written against one works on the other.
func TestSimulatedIsLikeKernel(t *testing.T) {
	rig := kdevtest.Rig{
		Device: func(t testing.TB) verbs.Device {
			dev, err := provider.Open("sim:")
			must(t, err)
			return dev
		},
		Refused: func(*testing.T, *kdevtest.Pair) {}, // it has the limits that it tells
	}
	kdevtest.Run(t, &rig)
}
