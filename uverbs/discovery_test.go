//go:build linux

package uverbs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/verbs"
)

// writeTree makes files below a new directory.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// rxeTree is what sysfs and /dev have for one rxe device.
func rxeTree() map[string]string {
	return map[string]string{
		"class/infiniband_verbs/abi_version":              "6",
		"class/infiniband_verbs/uverbs0/ibdev":            "rxe0",
		"class/infiniband_verbs/uverbs0/abi_version":      "2",
		"class/infiniband_verbs/uverbs0/dev":              "231:192",
		"class/infiniband/rxe0/node_type":                 "1: CA",
		"class/infiniband/rxe0/node_guid":                 "5054:00ff:fe12:3456",
		"class/infiniband/rxe0/node_desc":                 "rxe",
		"class/infiniband/rxe0/parent":                    "eth0",
		"class/infiniband/rxe0/ports/1/state":             "4: ACTIVE",
		"class/infiniband/rxe0/ports/1/gids/0":            "fe80:0000:0000:0000:5054:00ff:fe12:3456",
		"class/infiniband/rxe0/ports/1/gids/1":            "0000:0000:0000:0000:0000:ffff:0a09:0001",
		"class/infiniband/rxe0/ports/1/gids/2":            "0000:0000:0000:0000:0000:0000:0000:0000",
		"class/infiniband/rxe0/ports/1/gids/3":            "0000:0000:0000:0000:0000:ffff:0a09:0002",
		"class/infiniband/rxe0/ports/1/gid_attrs/types/0": "RoCE v2",
		"class/infiniband/rxe0/ports/1/gid_attrs/types/1": "RoCE v2",
		"class/infiniband/rxe0/ports/1/gid_attrs/types/3": "IB/RoCE v1",
		"class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0": "lo",
		"class/infiniband/rxe0/ports/1/gid_attrs/ndevs/1": "lo",
		"class/infiniband/rxe0/ports/1/gid_attrs/ndevs/3": "of-another-namespace",
		"infiniband/uverbs0":                              "",
	}
}

func TestDiscovery(t *testing.T) {
	root := writeTree(t, rxeTree())
	s := &System{SysRoot: root, DevRoot: root}
	devs, err := s.Devices()
	if err != nil || len(devs) != 1 {
		t.Fatalf("devices %+v, %v", devs, err)
	}
	want := Device{Name: "rxe0", Node: "uverbs0", Path: filepath.Join(root, "infiniband/uverbs0"), Major: 231, Minor: 192, Driver: DriverRXE,
		Kernel: "rxe", ABI: 2, NodeType: 1, NodeGUID: 0x505400fffe123456, Ports: 1, NetDev: "eth0"}
	if devs[0] != want {
		t.Errorf("device %+v, want %+v", devs[0], want)
	}
	// The node of the tree is an ordinary file.
	if err := s.Probe(devs[0]); !errors.Is(err, verbs.ErrDeviceLost) {
		t.Errorf("probe of what is no device: %v", err)
	}
}

func TestDiscoveryTroubles(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(map[string]string)
		target error
		text   string
	}{
		{"no uverbs", func(f map[string]string) { delete(f, "class/infiniband_verbs/uverbs0/ibdev") }, unix.ENOENT, "ib_uverbs"},
		{"no node", func(f map[string]string) { delete(f, "infiniband/uverbs0") }, os.ErrNotExist, "no device node"},
		{"no number", func(f map[string]string) { f["class/infiniband_verbs/uverbs0/dev"] = "what" }, nil, `"what"`},
		{"ABI 7", func(f map[string]string) { f["class/infiniband_verbs/abi_version"] = "7" }, verbs.ErrUnsupported, "version 7"},
	} {
		files := rxeTree()
		tt.change(files)
		root := writeTree(t, files)
		devs, err := (&System{SysRoot: root, DevRoot: root}).Devices()
		if err != nil || len(devs) != 1 || devs[0].Err == nil {
			t.Errorf("%s: %+v, %v", tt.name, devs, err)
			continue
		}
		if err := devs[0].Err; tt.target != nil && !errors.Is(err, tt.target) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: error %q", tt.name, err)
		}
		if _, err := (&System{}).Open(devs[0], nil); err != devs[0].Err {
			t.Errorf("%s: opening gives %v", tt.name, err)
		}
	}
	devs, err := (&System{SysRoot: t.TempDir()}).Devices()
	if err != nil || len(devs) != 0 {
		t.Errorf("a machine without RDMA: %+v, %v", devs, err)
	}
}

// A node that became another device's is not opened.
func TestRenumberedNode(t *testing.T) {
	k := newFake(t)
	s := k.system()
	d := fakeDevice
	d.Minor++
	fds := openFDs(t)
	if _, err := s.Open(d, nil); err == nil || !strings.Contains(err.Error(), "231:199, not 231:200") {
		t.Errorf("opened with the wrong number: %v", err)
	}
	if n := openFDs(t); n != fds || len(k.calls) != 0 {
		t.Errorf("%d descriptors, %d before; %d requests", n, fds, len(k.calls))
	}
}
