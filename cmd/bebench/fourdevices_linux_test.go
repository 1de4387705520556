package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/internal/testdev"
	labport "github.com/byteexpress/byteexpress/internal/testdev/port"
)

// Case C06 on a kernel: of four devices two have a node that a user may open, and these
// work, in a root with nothing but their nodes and sysfs.
func TestDeviceInEmptyRoot(t *testing.T) {
	name := testdev.Name(t)
	testdev.Interface(t, name)
	link(t, "rxe_6", dummy(t, "dummy6"))
	link(t, "rxe_7", dummy(t, "dummy7"))
	link(t, "rxe_8", dummy(t, "dummy8"))
	root := emptyRoot(t)
	if err := os.MkdirAll(filepath.Join(root, "sys"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("sysfs", filepath.Join(root, "sys"), "sysfs", unix.MS_RDONLY, ""); err != nil {
		t.Skipf("sysfs cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(filepath.Join(root, "sys"), 0); err != nil {
			t.Error(err)
		}
	})
	node(t, root, name, 0o666)
	node(t, root, "rxe_7", 0o600)
	node(t, root, "rxe_8", 0o666)
	r, opened := traced(t, root, "devices", "--why")
	r.want(t, exit.Done, name+"\n", "rank 1: software on", "rank 2: software on", "rxe_6: open /dev/infiniband/uverbs", "no device node", "rxe_7: open /dev/infiniband/uverbs", "permission denied")
	if strings.Contains(r.out, "rank 3: software") || len(opened) > 0 {
		t.Errorf("a third device can be used, or %q were looked for:\n%s", opened, r.out)
	}
	r, _ = traced(t, root, "doctor", "-d", name)
	r.want(t, exit.Done, "loop "+name, "two queue pairs sent 64 bytes to each other")
}

// dummy adds an interface with an address, until the test ends.
func dummy(t *testing.T, name string) string {
	t.Helper()
	l := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: name, MTU: 4200}}
	if err := netlink.LinkAdd(l); err != nil {
		t.Skipf("interface %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := netlink.LinkDel(l); err != nil {
			t.Error(err)
		}
	})
	addr, err := netlink.ParseAddr(fmt.Sprintf("10.9.%s.1/24", strings.TrimPrefix(name, "dummy")))
	if err == nil {
		err = netlink.AddrAdd(l, addr)
	}
	if err == nil {
		err = netlink.LinkSetUp(l)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// link adds an rxe device that has its addresses, until the test ends.
func link(t *testing.T, name, netdev string) {
	t.Helper()
	if err := netlink.RdmaLinkAdd(name, "rxe", netdev); err != nil {
		t.Skipf("rxe device %s on %s: %v", name, netdev, err)
	}
	t.Cleanup(func() {
		if err := netlink.RdmaLinkDel(name); err != nil {
			t.Error(err)
		}
	})
	var err error
	for range 400 { // the kernel fills the GID table a moment later
		if _, err = labport.IPv4GID(name); err == nil {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatal(err)
}

// node makes the device node of a device below another root.
func node(t *testing.T, root, device string, mode uint32) {
	t.Helper()
	dirs, _ := filepath.Glob("/sys/class/infiniband_verbs/uverbs*")
	for _, dir := range dirs {
		ibdev, _ := os.ReadFile(filepath.Join(dir, "ibdev"))
		if strings.TrimSpace(string(ibdev)) != device {
			continue
		}
		dev, _ := os.ReadFile(filepath.Join(dir, "dev"))
		var major, minor uint32
		if _, err := fmt.Sscanf(string(dev), "%d:%d", &major, &minor); err != nil {
			t.Fatalf("%s: %q: %v", device, dev, err)
		}
		path := filepath.Join(root, "dev/infiniband", filepath.Base(dir))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mknod(path, unix.S_IFCHR|mode, int(unix.Mkdev(major, minor))); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, os.FileMode(mode)); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no device node of %s", device)
}
