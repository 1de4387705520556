package provider

import (
	"fmt"
	"strings"

	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// Info describes a device of this machine.
type Info struct {
	verbs.DeviceInfo        // Provider is empty if there is none for the driver
	Driver           string // the kernel's driver, as "mlx5_core"
	ABI              int    // version of the driver's kernel ABI
	NetDev           string // of software devices: the network interface below
	Err              error  // not nil: it cannot be used, and why
	Kernel           uverbs.Device
}

// List gives the RDMA devices of the kernel, by name, with the reason for those
// that cannot be used. A machine without any has an empty list.
func List() ([]Info, error) {
	devs, err := devicesOf(&system)
	infos := make([]Info, len(devs))
	for i := range devs {
		infos[i] = devs[i].info
	}
	return infos, err
}

// Open gives the device of a name. An error about a name that no device has wraps
// [verbs.ErrNotFound] and lists those there are; about a device that cannot be
// used, it is the one that List has.
func Open(name string) (verbs.Device, error) {
	if isSimulated(name) {
		return openSimulated(name)
	}
	devs, err := devicesOf(&system)
	if err != nil {
		return nil, err
	}
	known := []string{simulatedDefault}
	for _, d := range devs {
		if d.info.Name == name {
			if d.info.Err != nil {
				return nil, d.info.Err
			}
			return d.device, nil
		}
		known = append(known, d.info.Name)
	}
	return nil, &verbs.OpError{Op: "open", Device: fmt.Sprintf("%q", name), Err: verbs.ErrNotFound, Remedy: "devices here: " + strings.Join(known, ", ")}
}

// Default chooses a device: the first of [Rank] that is not rejected, else a
// simulated one. The note says in words what was chosen and, if not a real device,
// why not.
func Default() (dev verbs.Device, note string, err error) {
	var why []string
	all, err := Rank()
	if err != nil {
		why = append(why, err.Error())
	}
	for _, c := range all {
		if c.Rank == 1 {
			return c.Device, fmt.Sprintf("%s (%s): %s", c.Name, c.Provider, c.Why), nil
		}
		why = append(why, rejection(&c))
	}
	if len(why) == 0 {
		why = []string{"this machine has no RDMA device"}
	}
	dev, err = openSimulated(simulatedDefault)
	return dev, simulatedDefault + " (simulated): " + strings.Join(why, "; "), err
}

// rejection names the device, which an error does by itself.
func rejection(c *Candidate) string {
	if c.Err != nil {
		return c.Why
	}
	return c.Name + ": " + c.Why
}

// system is the kernel that runs.
var system uverbs.System

// kernelDevice is a device of the kernel; device is nil when info.Err is not.
type kernelDevice struct {
	info   Info
	device verbs.Device
}
