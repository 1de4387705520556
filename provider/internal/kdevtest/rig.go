//go:build linux

package kdevtest

import (
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/verbs"
)

// Rig is a device to test, and in what it may differ from others. Each test is a
// method; [Run] runs them all.
type Rig struct {
	// Device gives the device for one test, or skips the test.
	Device func(testing.TB) verbs.Device
	// Kinds are kinds of the device by name, to send every opcode on; nil: Device only.
	Kinds map[string]func(testing.TB) verbs.Device
	// Also are statuses that the device may report in place of the right one.
	Also map[cq.Status][]cq.Status
	// Resources counts the objects that the kernel has of the device, and the device's
	// own counters, by name; nil: cannot be told.
	Resources func(testing.TB) map[string]uint64
	// Refused checks that the provider's own limits of a queue pair are refused.
	Refused func(*testing.T, *Pair)
}

// Connect makes a pair on the device; at the end of the test nothing may be left.
func (r *Rig) Connect(t testing.TB, cfg Config) *Pair {
	t.Helper()
	NoLeaks(t)
	return Connect(t, r.Device(t), cfg)
}

// without skips the test where the device's kernel has a fault.
func (r *Rig) without(t testing.TB, f testdev.Fault) {
	t.Helper()
	f.Skip(t, r.Device(t).Info().Name)
}
