//go:build linux

package provider

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// tree writes a sysfs and a device tree with four NICs in it, of which the process
// may open two: those of uverbs1 and uverbs3 have no node, or no permission. It
// gives the system that sees them.
func tree(t *testing.T, abi string) *uverbs.System {
	t.Helper()
	root := t.TempDir()
	write := func(path, content string) {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("sys/class/infiniband_verbs/abi_version", abi)
	for i, name := range []string{"rxe0", "rxe1", "rxe2", "erdma0"} {
		node := "uverbs" + string(rune('0'+i))
		write("sys/class/infiniband_verbs/"+node+"/ibdev", name)
		write("sys/class/infiniband_verbs/"+node+"/abi_version", "2")
		write("sys/class/infiniband_verbs/"+node+"/dev", "231:"+[]string{"192", "193", "194", "195"}[i])
		dir := "sys/class/infiniband/" + name
		write(dir+"/node_type", "1: CA")
		write(dir+"/node_guid", "0250:56ff:fe00:000"+string(rune('0'+i)))
		write(dir+"/ports/1/state", "4: ACTIVE")
		if strings.HasPrefix(name, "rxe") {
			write(dir+"/node_desc", "rxe")
			write(dir+"/parent", "eth0")
		} else if err := os.MkdirAll(filepath.Join(root, dir, "device"), 0o755); err != nil {
			t.Fatal(err)
		} else if err := os.Symlink("/bus/pci/drivers/erdma", filepath.Join(root, dir, "device", "driver")); err != nil {
			t.Fatal(err)
		}
		if node != "uverbs1" {
			write("dev/infiniband/"+node, "")
		}
	}
	return &uverbs.System{
		SysRoot: filepath.Join(root, "sys"), DevRoot: filepath.Join(root, "dev"),
		OpenNode: func(path string) (int, uint64, error) {
			minor := map[string]uint32{"uverbs0": 192, "uverbs2": 194, "uverbs3": 195}[filepath.Base(path)]
			if minor == 194 {
				return -1, 0, unix.EACCES
			}
			fd, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
			return fd, unix.Mkdev(231, minor), err
		},
	}
}

func TestDevices(t *testing.T) {
	devs, err := devicesOf(tree(t, "6"))
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		name, provider string
		target         error
		texts          []string
	}{
		{"erdma0", "", verbs.ErrUnsupported, []string{"erdma", "kernel ABI version 2"}},
		{"rxe0", "rxe", nil, nil},
		{"rxe1", "rxe", os.ErrNotExist, []string{"no device node", "uverbs1", "--device"}},
		{"rxe2", "rxe", os.ErrPermission, []string{"permission denied", "uverbs2", "chmod"}},
	}
	if len(devs) != len(want) {
		t.Fatalf("%d devices: %+v", len(devs), devs)
	}
	for i, w := range want {
		d := devs[i]
		if d.info.Name != w.name || d.info.Provider != w.provider || d.info.Ports != 1 || (d.device == nil) != (w.target != nil) {
			t.Errorf("device %d is %+v, want %+v", i, d, w)
		}
		if !errors.Is(d.info.Err, w.target) {
			t.Errorf("%s: error %v, want %v", w.name, d.info.Err, w.target)
		}
		for _, text := range w.texts {
			if d.info.Err == nil || !strings.Contains(d.info.Err.Error(), text) {
				t.Errorf("%s: error %v lacks %q", w.name, d.info.Err, text)
			}
		}
	}
	if g := devs[1].info.NodeGUID; g != 0x025056fffe000000 {
		t.Errorf("node GUID %#x", g)
	}
}

func TestOtherKernelABI(t *testing.T) {
	devs, err := devicesOf(tree(t, "7"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devs {
		if d.info.Name != "rxe0" {
			continue
		}
		if err := d.info.Err; !errors.Is(err, verbs.ErrUnsupported) || !strings.Contains(err.Error(), "version 6") || !strings.Contains(err.Error(), "version 7") {
			t.Errorf("error %v does not name both versions", err)
		}
	}
}

func TestOpenByName(t *testing.T) {
	old := system
	defer func() { system = old }()
	system = *tree(t, "6")
	_, err := Open("nic9")
	if !errors.Is(err, verbs.ErrNotFound) {
		t.Fatalf("unknown name: %v", err)
	}
	for _, known := range []string{"nic9", "sim:", "rxe0", "erdma0"} {
		if !strings.Contains(err.Error(), known) {
			t.Errorf("%q does not name %s", err, known)
		}
	}
	if _, err := Open("rxe2"); !errors.Is(err, os.ErrPermission) {
		t.Errorf("without permission: %v", err)
	}
	if d, err := Open("rxe0"); err != nil || d.Info().Name != "rxe0" || d.Info().Provider != "rxe" {
		t.Errorf("rxe0: %v, %v", d, err)
	}
	if d, err := Open("sim:"); err != nil || d.Info().Provider != "sim" {
		t.Errorf("sim: %v, %v", d, err)
	}
	if l, err := List(); err != nil || len(l) != 4 {
		t.Errorf("list %v, %v", l, err)
	}
}

// Without a usable device the choice is the simulator, and the note says why.
func TestDefault(t *testing.T) {
	old := system
	defer func() { system = old }()
	system = uverbs.System{SysRoot: t.TempDir()}
	d, note, err := Default()
	if err != nil || d.Info().Provider != "sim" || !strings.Contains(note, "no RDMA device") {
		t.Errorf("without devices: %v, %q, %v", d, note, err)
	}
	system = *tree(t, "6") // rxe0 is /dev/null here: it opens, and knows no ioctl
	d, note, err = Default()
	if err != nil || d.Info().Provider != "sim" {
		t.Fatalf("with devices that do not work: %v, %q, %v", d, note, err)
	}
	for _, text := range []string{"rxe0", "no device node", "permission denied", "erdma"} {
		if !strings.Contains(note, text) {
			t.Errorf("note %q lacks %q", note, text)
		}
	}
}

// What looks like the name of a model is one, or refused.
func TestNoSuchModel(t *testing.T) {
	for _, name := range []string{"sim:mlx4", "sim:mlx5x", "sim:mlx5_0"} {
		if _, err := Open(name); !errors.Is(err, verbs.ErrNotFound) || !strings.Contains(err.Error(), "sim:mlx5:NAME") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The modelled NICs are driven by the provider of the real ones, and have names.
func TestModel(t *testing.T) {
	if !mmio.HasBarriers {
		t.Skip("no barriers for device memory on this processor")
	}
	a, err := Open("sim:mlx5")
	if err != nil || a.Info().Provider != "mlx5" || a.Info().Name != "sim:mlx5" {
		t.Fatalf("sim:mlx5: %+v, %v", a, err)
	}
	b, err := Open("sim:mlx5:other")
	if err != nil || b.Info().NodeGUID == a.Info().NodeGUID || b.Info().Name != "sim:mlx5:other" {
		t.Errorf("another model: %+v, %v", b, err)
	}
	ctx, err := a.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ctx.Close()
	if attr, err := ctx.Attr(); err != nil || attr.MaxInline < 512 {
		t.Errorf("limits %+v, %v", attr, err)
	}
}

// A device of which neither netlink nor a bus driver's name tells the driver is
// known by its PCI id.
func TestDeviceByPCIID(t *testing.T) {
	s := tree(t, "6")
	dir := filepath.Join(s.SysRoot, "class/infiniband/erdma0/device")
	alias := []byte("pci:v000015B3d0000101Bsv000015B3sd00000001bc02sc00i00\n") // ConnectX-6
	if err := errors.Join(os.Remove(filepath.Join(dir, "driver")), os.WriteFile(filepath.Join(dir, "modalias"), alias, 0o644),
		os.WriteFile(filepath.Join(s.SysRoot, "class/infiniband_verbs/uverbs3/abi_version"), []byte("1\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	devs, err := devicesOf(s)
	if err != nil {
		t.Fatal(err)
	}
	if d := devs[0]; d.info.Name != "erdma0" || d.info.Provider != "mlx5" || d.info.Err != nil {
		t.Errorf("%+v", d.info)
	}
}
