//go:build linux

package uverbs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/verbs"
)

// nicTree adds what sysfs has for an InfiniBand adapter, mlx5_0.
func nicTree() map[string]string {
	files := rxeTree()
	d := "class/infiniband/mlx5_0/"
	maps.Copy(files, map[string]string{
		d + "node_type": "1: CA", d + "node_guid": "0c42:a103:00aa:bbcc", d + "fw_ver": "20.31.1014", d + "board_id": "MT_0000000223", d + "hca_type": "MT4123",
		d + "node_desc": "host7 mlx5_0", d + "ports/1/state": "4: ACTIVE", d + "ports/1/phys_state": "5: LinkUp", d + "ports/1/link_layer": "InfiniBand",
		d + "ports/1/rate": "400 Gb/sec (4X NDR)", d + "ports/1/lid": "0x2a", d + "ports/1/sm_lid": "0x1", d + "ports/1/pkeys/0": "0xffff", d + "ports/1/pkeys/1": "0x0000",
		d + "ports/1/pkeys/2": "0x8001", d + "ports/1/pkeys/10": "0x7fff", d + "ports/1/gids/0": "fe80:0000:0000:0000:0c42:a103:00aa:bbcc",
		d + "ports/1/gid_attrs/types/0": "IB/RoCE v1", d + "ports/1/counters/port_rcv_errors": "7", d + "ports/1/counters/port_xmit_data": "not a number",
		d + "ports/1/hw_counters/out_of_sequence": "3", d + "ports/1/hw_counters/lifespan": "10",
		"devices/pci0000:17/0000:17:00.0/numa_node": "1", "devices/pci0000:17/0000:17:00.0/local_cpulist": "16-31",
		"module/mlx5_core/version":             "24.10-1",
		"class/infiniband_verbs/uverbs1/ibdev": "mlx5_0", "class/infiniband_verbs/uverbs1/abi_version": "1", "class/infiniband_verbs/uverbs1/dev": "231:193",
		"bus/pci/drivers/mlx5_core/new_id": "", "infiniband/uverbs1": "",
	})
	return files
}

func TestDetails(t *testing.T) {
	root := writeTree(t, nicTree())
	pci := filepath.Join(root, "devices/pci0000:17/0000:17:00.0")
	for link, to := range map[string]string{
		filepath.Join(root, "class/infiniband/mlx5_0/device"): pci, filepath.Join(pci, "driver"): filepath.Join(root, "bus/pci/drivers/mlx5_core"),
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	s := &System{SysRoot: root, DevRoot: root, Interfaces: twoInterfaces}
	devs, err := s.Devices()
	if err != nil || len(devs) != 2 || devs[0].Name != "mlx5_0" || devs[0].Driver != DriverMLX5 || devs[0].Err != nil {
		t.Fatalf("devices %+v, %v", devs, err)
	}
	d := s.Details(devs[0])
	if d.Firmware != "20.31.1014" || d.Board != "MT_0000000223" || d.Type != "MT4123" || d.Description != "host7 mlx5_0" || d.PCI != "0000:17:00.0" ||
		d.NUMANode != 1 || d.LocalCPUs != "16-31" || d.Module != "mlx5_core" || d.ModuleVersion != "24.10-1" || len(d.Ports) != 1 {
		t.Errorf("details %+v", d)
	}
	p := d.Ports[0]
	if p.State != verbs.PortActive || p.Physical != "LinkUp" || p.LinkLayer != verbs.LinkInfiniBand || p.SpeedGbps != 400 || p.LID != 42 || p.SMLID != 1 ||
		!slices.Equal(p.PKeys, []uint16{0xffff, 0x8001, 0x7fff}) ||
		!maps.Equal(p.Counters, map[string]uint64{"port_rcv_errors": 7, "out_of_sequence": 3}) {
		t.Errorf("port %+v", p)
	}
	if gids, err := s.GIDs("mlx5_0", 1); err != nil || len(gids) != 1 || gids[0].Type != verbs.GIDInfiniBand || gids[0].Hidden != "" {
		t.Errorf("GIDs %+v, %v", gids, err)
	}
	if soft := s.Details(devs[1]); soft.PCI != "" || soft.NUMANode != -1 || soft.Module != "rdma_rxe" || len(soft.Ports) != 1 {
		t.Errorf("software device: %+v", soft)
	}
}

// On the kernel, sysfs alone and netlink alone list the same device.
func TestDeviceTwoWays(t *testing.T) {
	name := testdev.Name(t)
	find := func(s *System) Device {
		t.Helper()
		devs, err := s.Devices()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(devs, func(d Device) bool { return d.Name == name })
		if i < 0 || devs[i].Err != nil {
			t.Fatalf("%s: %+v", name, devs)
		}
		return devs[i]
	}
	both, sysfs, netlink := find(&System{}), find(&System{Netlink: silent}), find(&System{SysRoot: t.TempDir(), Netlink: kernelNetlink(t)})
	sysfs.Index = both.Index // netlink alone has it
	if sysfs != both {
		t.Errorf("sysfs alone: %+v, both: %+v", sysfs, both)
	}
	netlink.NetDev, netlink.Kernel, netlink.Modalias = both.NetDev, both.Kernel, both.Modalias // sysfs alone has them
	if netlink != both {
		t.Errorf("netlink alone: %+v, both: %+v", netlink, both)
	}
	if mode := (&System{}).NetNSMode(); mode != "shared" && mode != "exclusive" {
		t.Errorf("namespace mode %q", mode)
	}
	if n, err := (&System{}).CMNode(); err != nil || n.ABI != 4 {
		t.Errorf("rdma_cm: %+v, %v", n, err)
	}
	d := (&System{}).Details(both)
	if len(d.Ports) == 0 || d.Ports[0].State != verbs.PortActive || d.Ports[0].SpeedGbps == 0 {
		t.Errorf("details %+v", d)
	}
}

// kernelNetlink is the kernel's answer also to a system with another sysfs.
func kernelNetlink(t *testing.T) func([]byte) ([][]byte, error) {
	conn, err := dialNetlink()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.close)
	return conn.ask
}
