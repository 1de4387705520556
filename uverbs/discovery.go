//go:build linux

package uverbs

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/verbs"
)

// Devices lists the RDMA devices of the kernel by name, those that cannot be
// opened with the reason in Err. A machine without any has an empty list.
//
// It asks RDMA netlink and reads sysfs. Either alone is enough; a device about whose
// node they disagree has that as its Err. It does not open device nodes;
// [Device.Probe] does.
func (s *System) Devices() ([]Device, error) {
	told := s.netlinkDevices() // first: the question makes the kernel load ib_uverbs
	names, err := list(s.class("infiniband"))
	if err != nil && len(told) == 0 {
		return nil, &verbs.OpError{Op: "list RDMA devices", Device: "sysfs", Err: err, Remedy: "mount sysfs on " + s.sysRoot()}
	}
	nodes, _ := list(s.class("infiniband_verbs"))
	byName := map[string]string{}
	for _, n := range nodes {
		if strings.HasPrefix(n, "uverbs") {
			byName[s.read("infiniband_verbs", n, "ibdev")] = n
		}
	}
	for name := range told {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	abiErr := s.checkABI()
	var devs []Device
	for _, name := range names {
		d := s.device(name, byName[name], told[name])
		if d.Err == nil {
			d.Err = abiErr
		}
		devs = append(devs, d)
	}
	slices.SortFunc(devs, func(a, b Device) int { return strings.Compare(a.Name, b.Name) })
	return devs, nil
}

// Probe opens and closes the device's node and says why that is not possible.
func (s *System) Probe(d Device) error {
	if d.Err != nil {
		return d.Err
	}
	fd, err := s.openNode(d)
	if err != nil {
		return err
	}
	return s.close(fd)
}

// openNode opens the node and checks that it is the device that sysfs told of:
// nodes are renumbered when devices come and go.
func (s *System) openNode(d Device) (int, error) {
	fd, rdev, err := s.open(d.Path)
	if err != nil {
		return -1, openError(d, err)
	}
	if unix.Major(rdev) != d.Major || unix.Minor(rdev) != d.Minor {
		s.close(fd)
		return -1, &verbs.OpError{Op: "open", Device: d.Name, Object: d.Path, Remedy: "list the devices again, or make the node anew",
			Err: fmt.Errorf("the node is device %d:%d, not %d:%d", unix.Major(rdev), unix.Minor(rdev), d.Major, d.Minor)}
	}
	return fd, nil
}

func (s *System) class(parts ...string) string {
	return filepath.Join(append([]string{s.sysRoot(), "class"}, parts...)...)
}

// read gives the trimmed content of a file below /sys/class, "" if it cannot be read.
func (s *System) read(parts ...string) string {
	b, err := os.ReadFile(s.class(parts...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (s *System) checkABI() error {
	v := s.read("infiniband_verbs", "abi_version")
	if v == "" || v == strconv.Itoa(abiVersion) {
		return nil
	}
	return &verbs.UnsupportedError{Feature: fmt.Sprintf("verbs ABI version %d", abiVersion), Missing: "the kernel, which has version " + v}
}

// device puts together what sysfs and netlink tell of a device.
func (s *System) device(name, node string, nl nlDevice) Device {
	d := Device{Name: name, Node: node, Driver: nl.driver, Index: nl.index, NetDev: s.read("infiniband", name, "parent")}
	first, _, _ := strings.Cut(s.read("infiniband", name, "node_type"), ":")
	d.NodeType, _ = strconv.Atoi(first)
	d.NodeType = cmp.Or(d.NodeType, nl.nodeType)
	d.NodeGUID, _ = strconv.ParseUint(strings.ReplaceAll(s.read("infiniband", name, "node_guid"), ":", ""), 16, 64)
	d.NodeGUID = cmp.Or(d.NodeGUID, nl.nodeGUID)
	ports, _ := list(s.class("infiniband", name, "ports"))
	d.Ports = cmp.Or(len(ports), nl.ports)
	if link, err := os.Readlink(s.class("infiniband", name, "device", "driver")); err == nil {
		d.Kernel = filepath.Base(link)
	}
	d.Modalias = s.read("infiniband", name, "device", "modalias")
	if d.Driver == DriverUnknown {
		d.Driver = s.guessDriver(d)
	}
	if d.Kernel == "" {
		d.Kernel = d.Driver.String()
	}
	d.Err = s.findNode(&d, nl.chardev)
	return d
}

// findNode fills in the device's node, and says why it cannot be opened.
func (s *System) findNode(d *Device, nl chardev) error {
	dev := s.read("infiniband_verbs", d.Node, "dev")
	switch {
	case d.Node == "" && nl.node == "":
		return &verbs.OpError{Op: "find device node", Device: d.Name, Err: unix.ENOENT, Remedy: "load the kernel module ib_uverbs"}
	case d.Node == "" || dev == "":
		d.Node, d.ABI, d.Major, d.Minor = nl.node, nl.abi, nl.major, nl.minor
	default:
		d.ABI, _ = strconv.Atoi(s.read("infiniband_verbs", d.Node, "abi_version"))
		if n, err := fmt.Sscanf(dev, "%d:%d", &d.Major, &d.Minor); n != 2 || err != nil {
			return &verbs.OpError{Op: "read device number", Device: d.Name, Object: d.Node, Err: fmt.Errorf("sysfs says %q, not major:minor", dev)}
		}
		if nl.node != "" && (nl.node != d.Node || nl.major != d.Major || nl.minor != d.Minor) {
			return &verbs.OpError{Op: "find device node", Device: d.Name, Remedy: "list the devices again: it came back while they were listed",
				Err: fmt.Errorf("sysfs says %s, %d:%d, netlink says %s, %d:%d", d.Node, d.Major, d.Minor, nl.node, nl.major, nl.minor)}
		}
	}
	d.Path = filepath.Join(s.devRoot(), "infiniband", d.Node)
	if _, err := os.Stat(d.Path); err != nil {
		return openError(*d, err)
	}
	return nil
}

// pciDrivers maps the bus driver of a device to the verbs driver it comes with.
var pciDrivers = map[string]DriverID{
	"mlx5_core": DriverMLX5, "mlx4_core": DriverMLX4, "bnxt_en": DriverBNXTRE, "ice": DriverIRDMA, "i40e": DriverIRDMA, "irdma": DriverIRDMA,
	"cxgb4": DriverCXGB4, "qede": DriverQEDR, "hns3": DriverHNS, "hfi1": DriverHFI1, "efa": DriverEFA, "erdma": DriverERDMA,
	"mana": DriverMANA, "ionic": DriverIONIC, "vmw_pvrdma": DriverPVRDMA,
}

// guessDriver finds the driver when netlink does not tell.
func (s *System) guessDriver(d Device) DriverID {
	if id, ok := pciDrivers[d.Kernel]; ok {
		return id
	}
	switch desc := s.read("infiniband", d.Name, "node_desc"); {
	case desc == "rxe" || strings.HasPrefix(d.Name, "rxe") && d.NetDev != "":
		return DriverRXE
	case strings.HasPrefix(desc, "Software iWARP"):
		return DriverSIW
	}
	return DriverUnknown
}

// list gives the names in a directory, sorted; none if it does not exist.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}
