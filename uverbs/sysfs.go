//go:build linux

package uverbs

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/verbs"
)

// Details reads what sysfs has about a device, but for its GIDs, which are up to some
// thousand files: see GIDs (Documentation/ABI/stable/sysfs-class-infiniband of the kernel).
func (s *System) Details(d Device) Details {
	read := func(parts ...string) string { return s.read(append([]string{"infiniband", d.Name}, parts...)...) }
	out := Details{
		Firmware: read("fw_ver"), Board: read("board_id"), Type: read("hca_type"), Description: read("node_desc"), NUMANode: -1,
		LocalCPUs: read("device", "local_cpulist"), Module: d.Kernel,
	}
	if n, err := strconv.Atoi(read("device", "numa_node")); err == nil {
		out.NUMANode = n
	}
	if link, err := os.Readlink(s.class("infiniband", d.Name, "device")); err == nil && pciAddress.MatchString(filepath.Base(link)) {
		out.PCI = filepath.Base(link)
	}
	if m, ok := softModules[d.Driver]; ok {
		out.Module = m
	}
	if b, err := os.ReadFile(filepath.Join(s.sysRoot(), "module", out.Module, "version")); err == nil {
		out.ModuleVersion = strings.TrimSpace(string(b))
	}
	for port := 1; port <= d.Ports; port++ {
		out.Ports = append(out.Ports, s.port(d.Name, port))
	}
	return out
}

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// softModules are the modules of drivers that have no bus driver.
var softModules = map[DriverID]string{DriverRXE: "rdma_rxe", DriverSIW: "siw"}

func (s *System) port(device string, port int) PortDetails {
	in := func(more ...string) []string {
		return append([]string{"infiniband", device, "ports", strconv.Itoa(port)}, more...)
	}
	number := func(file string) uint16 {
		v, _ := strconv.ParseUint(s.read(in(file)...), 0, 16)
		return uint16(v)
	}
	p := PortDetails{Port: port, LID: number("lid"), SMLID: number("sm_lid"), Rate: s.read(in("rate")...), Counters: map[string]uint64{}}
	state, _, _ := strings.Cut(s.read(in("state")...), ":")
	v, _ := strconv.ParseUint(state, 10, 8)
	p.State = verbs.PortState(v)
	_, p.Physical, _ = strings.Cut(s.read(in("phys_state")...), ": ")
	switch s.read(in("link_layer")...) {
	case "InfiniBand":
		p.LinkLayer = verbs.LinkInfiniBand
	case "Ethernet":
		p.LinkLayer = verbs.LinkEthernet
	}
	if gbps, _, ok := strings.Cut(p.Rate, " Gb/sec"); ok {
		if v, err := strconv.ParseFloat(gbps, 64); err == nil && v >= 0 && v <= math.MaxFloat32 { // no NaN
			p.SpeedGbps = v
		}
	}
	keys, _ := list(s.class(in("pkeys")...))
	slices.SortStableFunc(keys, func(a, b string) int { return len(a) - len(b) }) // by number: the names are sorted as text
	for _, k := range keys {
		if v, err := strconv.ParseUint(s.read(in("pkeys", k)...), 0, 16); err == nil && v != 0 {
			p.PKeys = append(p.PKeys, uint16(v))
		}
	}
	for _, dir := range []string{"counters", "hw_counters"} {
		files, _ := list(s.class(in(dir)...))
		for _, f := range files {
			if f == "lifespan" { // a setting
				continue
			}
			if v, err := strconv.ParseUint(s.read(in(dir, f)...), 10, 64); err == nil {
				p.Counters[f] = v
			}
		}
	}
	return p
}

// NetNSMode asks how RDMA devices belong to network namespaces: "shared" (every
// namespace sees all) or "exclusive". Empty: the kernel does not tell (`rdma system`).
func (s *System) NetNSMode() string {
	ask, done := s.netlink()
	defer done()
	if ask == nil {
		return ""
	}
	a, err := askOne(ask, nlRequest(nlSysGet, unix.NLM_F_REQUEST))
	switch {
	case err != nil || len(a[nlAttrNetNSMode]) == 0:
		return ""
	case nlNumber(a[nlAttrNetNSMode]) == 0:
		return "exclusive"
	}
	return "shared"
}

// CMNode finds the connection manager's device node, by netlink or sysfs. It is an
// error if the kernel has none, or if it is not in the device tree.
func (s *System) CMNode() (Node, error) {
	n := Node{Path: filepath.Join(s.devRoot(), "infiniband", "rdma_cm")}
	fail := func(err error, remedy string) (Node, error) {
		return n, &verbs.OpError{Op: "find device node", Device: "rdma_cm", Object: n.Path, Err: err, Remedy: remedy}
	}
	found := false
	ask, done := s.netlink() // the question makes the kernel load rdma_ucm
	defer done()
	if ask != nil {
		if a, err := askOne(ask, nlRequest(nlGetChardev, unix.NLM_F_REQUEST, nlAttr(nlAttrChardevType, []byte("rdma_cm\x00")))); err == nil {
			c := nlChardev(a)
			n.ABI, n.Major, n.Minor, found = c.abi, c.major, c.minor, true
		}
	}
	if dev := s.read("misc", "rdma_cm", "dev"); !found && dev != "" {
		if k, err := fmt.Sscanf(dev, "%d:%d", &n.Major, &n.Minor); k != 2 || err != nil {
			return fail(fmt.Errorf("sysfs says %q, not major:minor", dev), "")
		}
		n.ABI, _ = strconv.Atoi(s.read("misc", "rdma_cm", "abi_version"))
		found = true
	}
	if !found {
		return fail(unix.ENOENT, "load the kernel module: modprobe rdma_ucm")
	}
	if _, err := os.Stat(n.Path); err != nil {
		return fail(err, "in a container, pass the node in with `--device "+n.Path+"`")
	}
	return n, nil
}
