//go:build linux

package mlx5

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// Name is the provider's name in [verbs.DeviceInfo].
const Name = "mlx5"

// DriverABI is the version of the driver's ABI that this package speaks: the only
// one that there has been.
const DriverABI = 1

// Device is an mlx5 device that is not opened yet.
type Device struct {
	sys      *uverbs.System
	dev      uverbs.Device
	observer Observer
	settings *Settings // nil: the environment's
}

// New gives the mlx5 device that uverbs found.
func New(sys *uverbs.System, dev uverbs.Device) *Device { return &Device{sys: sys, dev: dev} }

// NewObserved gives a device that is a model, which has to be told of stores.
func NewObserved(sys *uverbs.System, dev uverbs.Device, o Observer) *Device {
	return &Device{sys: sys, dev: dev, observer: o}
}

// With gives the device with settings other than the environment's.
func (d *Device) With(s Settings) *Device {
	e := *d
	e.settings = &s
	return &e
}

// Info names the device.
func (d *Device) Info() verbs.DeviceInfo {
	return verbs.DeviceInfo{Name: d.dev.Name, Provider: Name, Ports: d.dev.Ports, NodeGUID: d.dev.NodeGUID}
}

// Open opens the device. The context runs one goroutine, which reads asynchronous
// events, until Close. On a processor for which package mmio has no barriers, and
// with a driver of another ABI, the error wraps [verbs.ErrUnsupported].
func (d *Device) Open() (verbs.Context, error) {
	if !mmio.HasBarriers {
		return nil, d.unsupported("mlx5 doorbells", "the "+runtime.GOARCH+" build, which has no store barriers for device memory (amd64 and arm64 have)")
	}
	if d.dev.ABI != DriverABI {
		return nil, d.unsupported(fmt.Sprintf("mlx5 driver ABI %d", DriverABI), fmt.Sprintf("the kernel, whose driver has version %d", d.dev.ABI))
	}
	s := d.settings
	if s == nil {
		env, err := SettingsFrom(os.Getenv)
		if err != nil {
			return nil, &verbs.OpError{Op: "open", Device: d.dev.Name, Err: err}
		}
		s = &env
	}
	k, a, err := d.openContext()
	if err != nil {
		return nil, err
	}
	if a.cqeVersion > cqeVersionUIDX {
		k.Close()
		return nil, d.unsupported(fmt.Sprintf("completion format 0 to %d", cqeVersionUIDX), fmt.Sprintf("the kernel, whose driver uses %d", a.cqeVersion))
	}
	if err := a.check(); err != nil {
		k.Close()
		return nil, &verbs.OpError{Op: "open", Device: d.dev.Name, Err: err, Remedy: otherDriver}
	}
	c, err := newContext(k, d, a, *s)
	if err != nil {
		k.Close()
		return nil, err
	}
	return c, nil
}

func (d *Device) unsupported(feature, missing string) error {
	return &verbs.OpError{Op: "open", Device: d.dev.Name, Err: &verbs.UnsupportedError{Feature: feature, Missing: missing}}
}

// openContext asks for a context as a kernel of today takes it, then as older ones
// do: without DEVX, which also some containers refuse, and with shorter requests.
func (d *Device) openContext() (k *uverbs.Context, a contextAnswer, err error) {
	for _, q := range []struct {
		flags uint32
		size  int
	}{
		{contextReqAllocDevx, contextReqSize}, {0, contextReqSize}, {0, int(contextReqLibCaps)}, {0, int(contextReqMaxCQEVersion)},
	} {
		var out [contextRespSize]byte
		k, e := d.sys.Open(d.dev, &uverbs.UHW{In: contextRequest(q.flags)[:q.size], Out: out[:]})
		if e == nil {
			return k, readContextAnswer(out[:]), nil
		}
		if err == nil {
			err = e
		}
		if !errors.Is(e, syscall.EINVAL) && !errors.Is(e, syscall.EOPNOTSUPP) && !errors.Is(e, syscall.EPERM) {
			return nil, a, e
		}
	}
	return nil, a, err
}
