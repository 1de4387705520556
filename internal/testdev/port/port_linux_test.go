package port_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/internal/testdev/port"
)

func TestIPv4GID(t *testing.T) {
	if g, err := port.IPv4GID(testdev.Name(t)); err != nil || !g.Addr.Is4() {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestNoDevice(t *testing.T) {
	if _, err := port.IPv4GID("nodevice9"); err == nil || !strings.Contains(err.Error(), "nodevice9: no such device") {
		t.Errorf("error %v, want one that names the device", err)
	}
}

// TestInterface: what a test does to testdev's interface is undone when it ends: the
// port is as before, each address at its index.
func TestInterface(t *testing.T) {
	name := testdev.Name(t)
	before, err := port.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("changed", func(t *testing.T) {
		link := testdev.Interface(t, name)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		ours, err := netlink.AddrList(link, netlink.FAMILY_V4)
		must(err)
		other, err := netlink.ParseAddr("10.99.1.9/24")
		must(err)
		must(netlink.LinkSetDown(link)) // which takes the IPv6 addresses
		for i := range ours {
			must(netlink.AddrDel(link, &ours[i]))
		}
		must(netlink.AddrAdd(link, other))
		must(netlink.LinkSetUp(link))
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if g, err := port.IPv4GID(name); err == nil && g.Addr.String() == other.IP.String() {
				return
			} else if time.Now().After(end) {
				t.Fatalf("the other address is no GID: %v, %v", g, err)
			}
		}
	})
	if after, err := port.Read(name); err != nil || after.String() != before.String() {
		t.Errorf("port 1 of %s is\n%v (%v)\nit was\n%v", name, after, err, before)
	}
}
