//go:build linux

package provider

import (
	"testing"

	"github.com/byteexpress/byteexpress/provider/internal/kdevtest"
	"github.com/byteexpress/byteexpress/verbs"
)

// memory is a simulator, for which the kernel devices' tests of memory hold too: it
// alone has windows without a kernel.
var memory = kdevtest.Rig{Device: func(t testing.TB) verbs.Device {
	d, err := Open("sim:")
	kdevtest.Must(t, err)
	return d
}}

func TestWindows(t *testing.T)        { memory.Windows(t) }
func TestWindowRefusals(t *testing.T) { memory.WindowRefusals(t) }
func TestBadBinds(t *testing.T)       { memory.BadBinds(t) }
func TestWindowLife(t *testing.T)     { memory.WindowLife(t) }
func TestReregister(t *testing.T)     { memory.Reregister(t) }
func TestDMABuf(t *testing.T)         { memory.DMABuf(t) }
func TestAdvise(t *testing.T)         { memory.Advise(t) }
