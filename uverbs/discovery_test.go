//go:build linux

package uverbs

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
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

func TestSysfsGIDs(t *testing.T) {
	k := newFake(t)
	c := k.open()
	c.sys.SysRoot = writeTree(t, rxeTree())
	c.dev.Name = "rxe0"
	gids, err := c.sysfsGIDs(1)
	if err != nil || len(gids) != 2 || gids[0].Index != 0 || !gids[0].GID.IsLinkLocal() || gids[1].GID.String() != "::ffff:10.9.0.1" ||
		gids[1].Type != verbs.GIDRoCEv2 || gids[1].NetDev != "lo" {
		t.Errorf("GIDs %+v, %v", gids, err)
	}
	if _, err := c.sysfsGIDs(2); err == nil {
		t.Error("a port that is not there has GIDs")
	}
}

// Entries of a network interface that is of another namespace are left out, if the
// interfaces can be listed.
func TestGIDsOfOtherNamespaces(t *testing.T) {
	var table []byte
	for i, ifindex := range []uint32{2, 2, 9, 0} {
		e := make([]byte, gidEntrySize)
		e[0], e[15] = 0xfe, byte(i+1)
		gidEntryGIDIndex.Put(e, uint32(10-i))
		gidEntryPortNum.Put(e, 1)
		gidEntryGIDType.Put(e, uint32(verbs.GIDRoCEv2))
		gidEntryNetdevIfindex.Put(e, ifindex)
		table = append(table, e...)
	}
	var got []int
	for _, g := range gidEntries(table, 1, map[int]string{2: "eth0"}) {
		got = append(got, g.Index)
	}
	if !slices.Equal(got, []int{7, 9, 10}) {
		t.Errorf("indexes %v", got)
	}
	if n := len(gidEntries(table, 1, nil)); n != 4 {
		t.Errorf("%d entries without a list of interfaces", n)
	}
	if n := len(gidEntries(table, 2, nil)); n != 0 {
		t.Errorf("%d entries of port 2", n)
	}
}

// fakeNetlink knows one device, rxe0, number 3, of driver siw.
func fakeNetlink(req []byte) ([][]byte, error) {
	a, err := nlAttrs(req)
	if err != nil {
		return nil, err
	}
	switch binary.NativeEndian.Uint16(req[4:]) {
	case nlClientNLDev<<10 | nlGet:
		return [][]byte{nlRequest(nlGet, 0, nlAttr(nlAttrDevIndex, []byte{3, 0, 0, 0}), nlAttr(nlAttrDevName, []byte("rxe0\x00")))}, nil
	case nlClientNLDev<<10 | nlGetChardev:
		if string(a[nlAttrChardevType]) != "uverbs\x00" || a[nlAttrDevIndex][0] != 3 {
			return nil, unix.EINVAL
		}
		return [][]byte{nlRequest(nlGetChardev, 0, nlAttr(nlAttrDriverID, binary.NativeEndian.AppendUint32(nil, uint32(DriverSIW))))}, nil
	}
	return nil, unix.EOPNOTSUPP
}

// Netlink's word on the driver is better than what sysfs looks like, and it alone has
// the kernel's number.
func TestDriverByNetlink(t *testing.T) {
	root := writeTree(t, rxeTree())
	for want, ask := range map[nlDevice]func([]byte) ([][]byte, error){
		{DriverSIW, 3}: fakeNetlink,
		{DriverRXE, 0}: func([]byte) ([][]byte, error) { return nil, unix.EOPNOTSUPP },
	} {
		devs, err := (&System{SysRoot: root, DevRoot: root, Netlink: ask}).Devices()
		if err != nil || len(devs) != 1 || devs[0].Driver != want.driver || devs[0].Index != want.index {
			t.Errorf("devices %+v, %v; want driver %v", devs, err, want)
		}
	}
}

func TestNetlinkSplit(t *testing.T) {
	one := nlRequest(nlGet, 0, nlAttr(nlAttrDevName, []byte("mlx5_0\x00")))
	done := nlRequest(0, 0)
	binary.NativeEndian.PutUint16(done[4:], unix.NLMSG_DONE)
	fail := append(nlRequest(0, 0), binary.NativeEndian.AppendUint32(nil, 0xffffffff-uint32(unix.EPERM)+1)...)
	binary.NativeEndian.PutUint32(fail, uint32(len(fail)))
	binary.NativeEndian.PutUint16(fail[4:], unix.NLMSG_ERROR)
	msgs, end, err := nlSplit(append(append([]byte{}, one...), one...))
	if len(msgs) != 2 || end || err != nil {
		t.Errorf("%d messages, %v, %v", len(msgs), end, err)
	}
	if msgs, end, err := nlSplit(append(append([]byte{}, one...), done...)); len(msgs) != 1 || !end || err != nil {
		t.Errorf("end of dump: %d messages, %v, %v", len(msgs), end, err)
	}
	if _, end, err := nlSplit(fail); !end || err != unix.EPERM {
		t.Errorf("error message: %v, %v", end, err)
	}
	for n := 1; n < len(one); n++ {
		if _, _, err := nlSplit(one[:n]); err == nil {
			t.Errorf("the first %d bytes: not refused", n)
		}
	}
}

func FuzzNetlink(f *testing.F) {
	f.Add(nlRequest(nlGet, 0, nlAttr(nlAttrDevName, []byte("rxe0\x00")), nlAttr(nlAttrDevIndex, []byte{1, 0, 0, 0})))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		msgs, _, _ := nlSplit(b)
		for _, m := range msgs {
			attrs, err := nlAttrs(m)
			if err != nil {
				continue
			}
			for typ, v := range attrs { // what was read can be written and read again
				again, err := nlAttrs(nlRequest(0, 0, nlAttr(typ, v)))
				if err != nil || string(again[typ]) != string(v) {
					t.Fatalf("attribute %d: %x became %x, %v", typ, v, again[typ], err)
				}
			}
		}
	})
}

func FuzzGIDEntries(f *testing.F) {
	e := make([]byte, gidEntrySize)
	e[15] = 1
	gidEntryPortNum.Put(e, 1)
	f.Add(e)
	f.Fuzz(func(t *testing.T, b []byte) {
		gids := gidEntries(b, 1, map[int]string{1: "eth0"})
		if len(gids) > len(b)/gidEntrySize {
			t.Fatalf("%d entries of %d bytes", len(gids), len(b))
		}
		for _, g := range gids {
			if g.GID.IsZero() {
				t.Fatal("an empty entry")
			}
		}
	})
}
