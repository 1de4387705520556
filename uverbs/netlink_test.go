//go:build linux

package uverbs

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/verbs"
)

// fakeNetlink knows one device, rxe0, number 3, of driver siw, and rdma_cm, in a
// system whose devices each belong to one namespace.
func fakeNetlink(req []byte) ([][]byte, error) {
	a, err := nlAttrs(req)
	if err != nil {
		return nil, err
	}
	u32, u64 := binary.NativeEndian.AppendUint32, binary.NativeEndian.AppendUint64
	switch binary.NativeEndian.Uint16(req[4:]) {
	case nlClientNLDev<<10 | nlGet:
		return [][]byte{nlRequest(nlGet, 0, nlAttr(nlAttrDevIndex, u32(nil, 3)), nlAttr(nlAttrDevName, []byte("rxe0\x00")), nlAttr(nlAttrPortIndex, u32(nil, 1)),
			nlAttr(nlAttrNodeGUID, u64(nil, 0x505400fffe123456)), nlAttr(nlAttrNodeType, []byte{1}))}, nil
	case nlClientNLDev<<10 | nlGetChardev:
		switch {
		case string(a[nlAttrChardevType]) == "rdma_cm\x00":
			return [][]byte{nlRequest(nlGetChardev, 0, nlAttr(nlAttrChardevName, []byte("rdma_cm\x00")), nlAttr(nlAttrChardevABI, u64(nil, 4)),
				nlAttr(nlAttrChardev, u64(nil, 10<<8|59)))}, nil
		case string(a[nlAttrChardevType]) != "uverbs\x00" || nlNumber(a[nlAttrDevIndex]) != 3:
			return nil, unix.EINVAL
		}
		return [][]byte{nlRequest(nlGetChardev, 0, nlAttr(nlAttrDriverID, u32(nil, uint32(DriverSIW))), nlAttr(nlAttrChardevName, []byte("uverbs0\x00")),
			nlAttr(nlAttrChardevABI, u64(nil, 2)), nlAttr(nlAttrChardev, u64(nil, 0xe7c0)))}, nil
	case nlClientNLDev<<10 | nlSysGet:
		return [][]byte{nlRequest(nlSysGet, 0, nlAttr(nlAttrNetNSMode, []byte{0}))}, nil
	}
	return nil, unix.EOPNOTSUPP
}

// silent is a kernel whose netlink does not answer.
func silent([]byte) ([][]byte, error) { return nil, unix.EOPNOTSUPP }

// Netlink's word on the driver is better than what sysfs looks like, and it alone has
// the kernel's number.
func TestDriverByNetlink(t *testing.T) {
	root := writeTree(t, rxeTree())
	for _, tt := range []struct {
		ask    func([]byte) ([][]byte, error)
		driver DriverID
		index  uint32
	}{{fakeNetlink, DriverSIW, 3}, {silent, DriverRXE, 0}} {
		devs, err := (&System{SysRoot: root, DevRoot: root, Netlink: tt.ask}).Devices()
		if err != nil || len(devs) != 1 || devs[0].Driver != tt.driver || devs[0].Index != tt.index || devs[0].Err != nil {
			t.Errorf("devices %+v, %v; want driver %v", devs, err, tt.driver)
		}
	}
}

// Netlink alone is enough: sysfs is not mounted.
func TestNetlinkAlone(t *testing.T) {
	root := writeTree(t, map[string]string{"infiniband/uverbs0": ""})
	s := &System{SysRoot: t.TempDir(), DevRoot: root, Netlink: fakeNetlink}
	devs, err := s.Devices()
	if err != nil || len(devs) != 1 {
		t.Fatalf("devices %+v, %v", devs, err)
	}
	want := Device{Name: "rxe0", Index: 3, Node: "uverbs0", Path: filepath.Join(root, "infiniband/uverbs0"), Major: 231, Minor: 192, Driver: DriverSIW,
		Kernel: "siw", ABI: 2, NodeType: 1, NodeGUID: 0x505400fffe123456, Ports: 1}
	if devs[0] != want {
		t.Errorf("device %+v, want %+v", devs[0], want)
	}
	s.Netlink = silent // control: then there is nothing
	if devs, err := s.Devices(); err != nil || len(devs) != 0 {
		t.Errorf("with neither: %+v, %v", devs, err)
	}
}

// A node about which the two disagree is not opened.
func TestNetlinkAndSysfsDisagree(t *testing.T) {
	files := rxeTree()
	files["class/infiniband_verbs/uverbs0/dev"] = "231:200"
	root := writeTree(t, files)
	s := &System{SysRoot: root, DevRoot: root, Netlink: fakeNetlink}
	devs, err := s.Devices()
	if err != nil || len(devs) != 1 || devs[0].Err == nil {
		t.Fatalf("devices %+v, %v", devs, err)
	}
	if got, want := devs[0].Err.Error(), "rxe0: find device node: sysfs says uverbs0, 231:200, netlink says uverbs0, 231:192: list the devices again: it came back while they were listed"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func TestNetNSMode(t *testing.T) {
	shared := func([]byte) ([][]byte, error) {
		return [][]byte{nlRequest(nlSysGet, 0, nlAttr(nlAttrNetNSMode, []byte{1}))}, nil
	}
	for want, ask := range map[string]func([]byte) ([][]byte, error){"exclusive": fakeNetlink, "shared": shared, "": silent} {
		if got := (&System{Netlink: ask}).NetNSMode(); got != want {
			t.Errorf("mode %q, want %q", got, want)
		}
	}
}

func TestCMNode(t *testing.T) {
	with := writeTree(t, map[string]string{"infiniband/rdma_cm": "", "class/misc/rdma_cm/dev": "10:59", "class/misc/rdma_cm/abi_version": "4"})
	want := Node{Path: filepath.Join(with, "infiniband/rdma_cm"), Major: 10, Minor: 59, ABI: 4}
	for _, s := range []*System{{SysRoot: t.TempDir(), DevRoot: with, Netlink: fakeNetlink}, {SysRoot: with, DevRoot: with, Netlink: silent}} {
		if n, err := s.CMNode(); err != nil || n != want {
			t.Errorf("node %+v, %v, want %+v", n, err, want)
		}
	}
	for text, s := range map[string]*System{
		"modprobe rdma_ucm": {SysRoot: t.TempDir(), DevRoot: with, Netlink: silent},
		"--device":          {SysRoot: with, DevRoot: t.TempDir(), Netlink: silent},
	} {
		var e *verbs.OpError
		if _, err := s.CMNode(); !errors.As(err, &e) || !strings.Contains(e.Remedy, text) {
			t.Errorf("error %v, want the remedy %q", err, text)
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
	f.Add(nlRequest(nlGetChardev, 0, nlAttr(nlAttrChardevName, []byte("uverbs0\x00")), nlAttr(nlAttrChardev, binary.NativeEndian.AppendUint64(nil, 0xe7c0))))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		msgs, _, _ := nlSplit(b)
		for _, m := range msgs {
			attrs, err := nlAttrs(m)
			if err != nil {
				continue
			}
			if c := nlChardev(attrs); c.major > 0xfff || c.minor > 0xfffff {
				t.Fatalf("device number %d:%d", c.major, c.minor)
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

// A dump that has no end is given up; one that signals interrupt is not.
func TestEndlessDump(t *testing.T) {
	msg, reads := nlRequest(nlGet, 0), 0
	endless := func(b []byte) (int, error) {
		if reads++; reads%2 == 0 {
			return 0, unix.EINTR
		}
		return copy(b, msg), nil
	}
	if msgs, err := nlAnswer(true, endless); err != errNetlink || len(msgs) != maxDatagrams/2 {
		t.Errorf("%d messages, %v", len(msgs), err)
	}
	done := nlRequest(nlGet, 0)
	binary.NativeEndian.PutUint16(done[4:], unix.NLMSG_DONE)
	answers := []string{string(msg), "", string(msg) + string(done)}
	real := func(b []byte) (int, error) {
		if answers[0] == "" {
			answers = answers[1:]
			return 0, unix.EINTR
		}
		n := copy(b, answers[0])
		answers = answers[1:]
		return n, nil
	}
	if msgs, err := nlAnswer(true, real); err != nil || len(msgs) != 2 {
		t.Errorf("%d messages, %v", len(msgs), err)
	}
}

// A number of ports that no device has is taken for none: listing does not ask for each.
func TestPortsOfNoSense(t *testing.T) {
	u32 := binary.NativeEndian.AppendUint32
	for n, want := range map[uint32]int{0: 0, 2: 2, 255: 255, 256: 0, 1<<32 - 1: 0} {
		s := &System{SysRoot: t.TempDir(), DevRoot: t.TempDir(), Netlink: func(req []byte) ([][]byte, error) {
			if binary.NativeEndian.Uint16(req[4:]) != nlClientNLDev<<10|nlGet {
				return nil, unix.EOPNOTSUPP
			}
			return [][]byte{nlRequest(nlGet, 0, nlAttr(nlAttrDevIndex, u32(nil, 3)), nlAttr(nlAttrDevName, []byte("rxe0\x00")), nlAttr(nlAttrPortIndex, u32(nil, n)))}, nil
		}}
		devs, err := s.Devices()
		if err != nil || len(devs) != 1 || devs[0].Ports != want {
			t.Errorf("%d ports: %+v, %v", n, devs, err)
		}
	}
}
