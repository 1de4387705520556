//go:build linux

package rxe

import (
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// Name is the provider's name in [verbs.DeviceInfo].
const Name = "rxe"

// MinABI to MaxABI are the versions of the driver's ABI that this package speaks: 2,
// and 1, which differs on 32-bit hosts only.
const (
	MinABI = 1
	MaxABI = 2
)

// Device is an rxe device that is not opened yet.
type Device struct {
	sys *uverbs.System
	dev uverbs.Device
}

// New gives the rxe device that uverbs found.
func New(sys *uverbs.System, dev uverbs.Device) *Device { return &Device{sys, dev} }

// Info names the device.
func (d *Device) Info() verbs.DeviceInfo {
	return verbs.DeviceInfo{Name: d.dev.Name, Provider: Name, Ports: d.dev.Ports, NodeGUID: d.dev.NodeGUID}
}

// Open opens the device. The context runs one goroutine, which reads asynchronous
// events, until Close.
func (d *Device) Open() (verbs.Context, error) {
	if d.dev.ABI < MinABI || d.dev.ABI > MaxABI {
		return nil, &verbs.OpError{Op: "open", Device: d.dev.Name, Err: &verbs.UnsupportedError{
			Feature: "rxe driver ABI 1 to 2", Missing: "the kernel, whose driver has another version"}}
	}
	k, err := d.sys.Open(d.dev, nil)
	if err != nil {
		return nil, err
	}
	c, err := newContext(k, d.Info())
	if err != nil {
		k.Close()
		return nil, err
	}
	return c, nil
}
