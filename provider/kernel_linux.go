package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/provider/rxe"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// drivers says which package drives which kernel driver's devices, and the versions
// of the driver's ABI that it speaks.
var drivers = map[uverbs.DriverID]struct {
	name           string
	minABI, maxABI int
	open           func(*uverbs.System, uverbs.Device) verbs.Device
}{
	uverbs.DriverMLX5: {mlx5.Name, mlx5.DriverABI, mlx5.DriverABI, func(s *uverbs.System, d uverbs.Device) verbs.Device { return mlx5.New(s, d) }},
	uverbs.DriverRXE:  {rxe.Name, rxe.MinABI, rxe.MaxABI, func(s *uverbs.System, d uverbs.Device) verbs.Device { return rxe.New(s, d) }},
}

// supported lists the drivers and versions, as "mlx5 (ABI 1), rxe (ABI 1 to 2)".
func supported() string {
	var all []string
	for _, d := range drivers {
		all = append(all, fmt.Sprintf("%s (%s)", d.name, abiRange(d.minABI, d.maxABI)))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func abiRange(low, high int) string {
	if low == high {
		return fmt.Sprintf("ABI %d", low)
	}
	return fmt.Sprintf("ABI %d to %d", low, high)
}

// devicesOf gives the devices of a system, with the reason for those that cannot be
// used.
func devicesOf(s *uverbs.System) ([]kernelDevice, error) {
	found, err := s.Devices()
	if err != nil {
		return nil, err
	}
	var devs []kernelDevice
	for _, d := range found {
		if _, ok := mlx5.Model(d.Modalias); ok && d.Driver == uverbs.DriverUnknown { // neither netlink nor the bus driver's name told
			d.Driver = uverbs.DriverMLX5
			d.Kernel = d.Driver.String()
		}
		k := kernelDevice{info: Info{
			DeviceInfo: verbs.DeviceInfo{Name: d.Name, Ports: d.Ports, NodeGUID: d.NodeGUID},
			Driver:     d.Kernel, ABI: d.ABI, NetDev: d.NetDev, Kernel: d, Err: s.Probe(d),
		}}
		drv, ok := drivers[d.Driver]
		k.info.Provider = drv.name
		switch {
		case !ok:
			k.info.Err = unsupported(s, d, "driver "+d.Kernel)
		case k.info.Err == nil && (d.ABI < drv.minABI || d.ABI > drv.maxABI):
			k.info.Err = unsupported(s, d, "another ABI of driver "+d.Kernel)
		case k.info.Err == nil:
			k.device = drv.open(s, d)
		}
		devs = append(devs, k)
	}
	return devs, nil
}

// unsupported says which driver was found, and which there are providers for.
func unsupported(s *uverbs.System, d uverbs.Device, what string) error {
	version := ""
	if v := s.Details(d).ModuleVersion; v != "" {
		version = ", module version " + v
	}
	return &verbs.OpError{Op: "open", Device: d.Name, Remedy: "use a device of one of these drivers: " + supported(),
		Err: &verbs.UnsupportedError{Feature: fmt.Sprintf("%s (kernel ABI version %d%s)", what, d.ABI, version), Missing: "this program"}}
}
