package testhost

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// Device numbers of the nodes, as Linux gives them out (IB_UVERBS_MAJOR,
// IB_UVERBS_BASE_MINOR of drivers/infiniband/core/uverbs_main.c).
const (
	uverbsMajor = 231
	uverbsMinor = 192
)

// NIC is an adapter of a machine, healthy in what is left zero.
type NIC struct {
	Name   string
	Ports  []sim.Port // none: one active Ethernet port with addresses on eth0
	Driver string     // the bus driver; empty: mlx5_core
	Parent string     // the network interface below, of software devices
	ABI    int        // version of the driver's ABI; 0: 1
	NoNode bool       // in sysfs, but not in /dev
	Denied bool       // the node may not be opened
}

// Host is a machine.
type Host struct {
	Root   string // of its files: sys, dev, proc
	Verbs  *uverbs.System
	Models map[string]*mlx5dev.Device // by the NIC's name
	t      testing.TB

	mu     sync.Mutex
	opened map[int]*mlx5dev.Device // by descriptor
}

// Interfaces are the network interfaces of a machine's namespace, by index.
func Interfaces() (map[int]string, error) { return map[int]string{1: "lo", 2: "eth0"}, nil }

// Port is an active Ethernet port with a link-local GID at index 0 and one for the
// IPv4 address 10.0.0.host at index 1, both RoCE v2 on eth0.
func Port(host byte) sim.Port {
	return sim.Port{
		PortAttr: verbs.PortAttr{State: verbs.PortActive, LinkLayer: verbs.LinkEthernet, MaxMTU: qp.MTU4096, ActiveMTU: qp.MTU4096, Width: 4, SpeedGbps: 100},
		GIDs: []sim.GID{
			{GIDEntry: verbs.GIDEntry{GID: verbs.GID{0: 0xfe, 1: 0x80, 15: host}, Index: 0, Type: verbs.GIDRoCEv2, NetDev: "eth0", IfIndex: 2}},
			{GIDEntry: verbs.GIDEntry{GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 15: host}, Index: 1, Type: verbs.GIDRoCEv2, NetDev: "eth0", IfIndex: 2}},
		},
	}
}

// New makes a machine with these adapters. It is gone when the test ends.
func New(t testing.TB, nics ...NIC) *Host {
	t.Helper()
	h := &Host{Root: t.TempDir(), Models: map[string]*mlx5dev.Device{}, t: t, opened: map[int]*mlx5dev.Device{}}
	h.Verbs = &uverbs.System{
		SysRoot: filepath.Join(h.Root, "sys"), DevRoot: filepath.Join(h.Root, "dev"), Interfaces: Interfaces,
		OpenNode: func(path string) (int, uint64, error) { return h.open(path, nics) }, CloseNode: h.close, Ioctl: h.ioctl,
	}
	h.Write("sys/class/infiniband_verbs/abi_version", "6")
	fabric := sim.NewFabric(sim.Config{})
	t.Cleanup(func() {
		if err := fabric.Close(); err != nil {
			t.Error(err)
		}
	})
	for i, n := range nics {
		ports := n.Ports
		if len(ports) == 0 {
			ports = []sim.Port{Port(byte(i + 1))}
		}
		cfg := mlx5dev.SimConfig()
		cfg.Ports = ports
		hw, err := fabric.NewDevice(n.Name, cfg)
		if err != nil {
			t.Fatal(err)
		}
		h.Models[n.Name] = mlx5dev.New(hw, mlx5dev.Config{ABI: n.ABI})
		h.add(i, n, ports)
	}
	return h
}

// Write makes or replaces a file of one line; path is below Root.
func (h *Host) Write(path, content string) {
	h.t.Helper()
	full := filepath.Join(h.Root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content+"\n"), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// Remove takes a file or directory away.
func (h *Host) Remove(path string) {
	h.t.Helper()
	if err := os.RemoveAll(filepath.Join(h.Root, path)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *Host) link(path, target string) {
	h.t.Helper()
	full := filepath.Join(h.Root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(h.Root, target), full); err != nil {
		h.t.Fatal(err)
	}
}

// add writes what sysfs and /dev have of a NIC.
func (h *Host) add(i int, n NIC, ports []sim.Port) {
	h.t.Helper()
	node := fmt.Sprintf("uverbs%d", i)
	verbsDir, dir := "sys/class/infiniband_verbs/"+node+"/", "sys/class/infiniband/"+n.Name+"/"
	h.Write(verbsDir+"ibdev", n.Name)
	h.Write(verbsDir+"abi_version", strconv.Itoa(max(n.ABI, 1)))
	h.Write(verbsDir+"dev", fmt.Sprintf("%d:%d", uverbsMajor, uverbsMinor+i))
	h.Write(dir+"node_type", "1: CA")
	h.Write(dir+"node_guid", fmt.Sprintf("0200:00ff:fe00:%04x", i+1))
	h.Write(dir+"fw_ver", "20.31.1014")
	if n.Parent != "" {
		h.Write(dir+"parent", n.Parent)
	}
	driver := n.Driver
	if driver == "" {
		driver = "mlx5_core"
	}
	pci := fmt.Sprintf("sys/devices/pci0000:00/0000:%02x:00.0", i+1)
	h.Write(pci+"/numa_node", "0")
	h.Write("sys/bus/pci/drivers/"+driver+"/uevent", "")
	h.link(pci+"/driver", "sys/bus/pci/drivers/"+driver)
	h.link(strings.TrimSuffix(dir, "/")+"/device", pci)
	for p, port := range ports {
		pd := fmt.Sprintf("%sports/%d/", dir, p+1)
		h.Write(pd+"state", fmt.Sprintf("%d: %v", port.State, port.State))
		h.Write(pd+"link_layer", port.LinkLayer.String())
		h.Write(pd+"rate", fmt.Sprintf("%g Gb/sec (4X EDR)", port.SpeedGbps))
		for _, g := range port.GIDs {
			h.Write(fmt.Sprintf("%sgids/%d", pd, g.Index), sysfsGID(g.GID))
			typ := "IB/RoCE v1" // also of InfiniBand
			if g.Type == verbs.GIDRoCEv2 {
				typ = "RoCE v2"
			}
			h.Write(fmt.Sprintf("%sgid_attrs/types/%d", pd, g.Index), typ)
			h.Write(fmt.Sprintf("%sgid_attrs/ndevs/%d", pd, g.Index), g.NetDev)
		}
	}
	if !n.NoNode {
		h.Write("dev/infiniband/"+node, "")
	}
}

func sysfsGID(g verbs.GID) string {
	var groups []string
	for i := 0; i < len(g); i += 2 {
		groups = append(groups, fmt.Sprintf("%02x%02x", g[i], g[i+1]))
	}
	return strings.Join(groups, ":")
}

func (h *Host) open(path string, nics []NIC) (int, uint64, error) {
	i, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "uverbs"))
	if err != nil || i >= len(nics) {
		return -1, 0, unix.ENOENT
	}
	if nics[i].Denied {
		return -1, 0, unix.EACCES
	}
	m := h.Models[nics[i].Name]
	fd, _, err := m.System().OpenNode(path)
	if err == nil {
		h.mu.Lock()
		h.opened[fd] = m
		h.mu.Unlock()
	}
	return fd, unix.Mkdev(uverbsMajor, uint32(uverbsMinor+i)), err
}

func (h *Host) close(fd int) error {
	h.mu.Lock()
	m := h.opened[fd]
	delete(h.opened, fd)
	h.mu.Unlock()
	if m == nil {
		return unix.EBADF
	}
	return m.System().CloseNode(fd)
}

func (h *Host) ioctl(fd int, page []byte) syscall.Errno {
	h.mu.Lock()
	m := h.opened[fd]
	h.mu.Unlock()
	if m == nil {
		return unix.EBADF
	}
	return m.System().Ioctl(fd, page)
}
