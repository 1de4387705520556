package provider

import (
	"fmt"

	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/provider/rxe"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// drivers says which package drives which kernel driver's devices.
var drivers = map[uverbs.DriverID]struct {
	name string
	open func(*uverbs.System, uverbs.Device) verbs.Device
}{
	uverbs.DriverMLX5: {mlx5.Name, func(s *uverbs.System, d uverbs.Device) verbs.Device { return mlx5.New(s, d) }},
	uverbs.DriverRXE:  {rxe.Name, func(s *uverbs.System, d uverbs.Device) verbs.Device { return rxe.New(s, d) }},
}

var system uverbs.System

func kernelDevices() ([]kernelDevice, error) { return devicesOf(&system) }

func devicesOf(s *uverbs.System) ([]kernelDevice, error) {
	found, err := s.Devices()
	if err != nil {
		return nil, err
	}
	var devs []kernelDevice
	for _, d := range found {
		if _, ok := mlx5.Model(d.Modalias); ok && d.Driver == uverbs.DriverUnknown { // neither netlink nor the bus driver's name told
			d.Driver = uverbs.DriverMLX5
		}
		k := kernelDevice{info: Info{
			DeviceInfo: verbs.DeviceInfo{Name: d.Name, Ports: d.Ports, NodeGUID: d.NodeGUID},
			Driver:     d.Kernel, ABI: d.ABI, NetDev: d.NetDev, Err: s.Probe(d),
		}}
		drv, ok := drivers[d.Driver]
		switch {
		case !ok:
			k.info.Err = &verbs.OpError{Op: "open", Device: d.Name, Remedy: "use a device with a provider: mlx5 or rxe",
				Err: &verbs.UnsupportedError{Feature: fmt.Sprintf("driver %s (kernel ABI version %d)", d.Kernel, d.ABI), Missing: "this program"}}
		case k.info.Err == nil:
			k.device = drv.open(s, d)
			fallthrough
		default:
			k.info.Provider = drv.name
		}
		devs = append(devs, k)
	}
	return devs, nil
}
