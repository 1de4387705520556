package testdev

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/byteexpress/byteexpress/internal/testdev/port"
)

// settle is how long the kernel may take to follow a change of the network, on a slow
// machine.
const settle = 20 * time.Second

// Interface gives the network interface below a software device, for tests that change
// it. It skips where others may use that: the lab's device is on a dummy interface. When
// the test ends, the interface is up with the addresses that it had, and each at its
// index of the GID table: who comes next may name that.
func Interface(t testing.TB, device string) netlink.Link {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("changes the network: only for root")
	}
	parent, err := os.ReadFile("/sys/class/infiniband/" + device + "/parent")
	if err != nil {
		t.Skipf("%s is not a software device: %v", device, err)
	}
	l, err := netlink.LinkByName(strings.TrimSpace(string(parent)))
	if err != nil || l.Type() != "dummy" {
		t.Skipf("%s is not on a dummy interface, as in the lab: %v", device, err)
	}
	was, err := port.Read(device)
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := addresses(l)
	if err != nil {
		t.Fatal(err)
	}
	index := func(a netlink.Addr) int {
		return slices.IndexFunc(was.GIDs, func(g port.GID) bool { return g.Addr.String() == a.IP.String() })
	}
	slices.SortFunc(addrs, func(a, b netlink.Addr) int { return index(a) - index(b) })
	t.Cleanup(func() {
		for end := time.Now().Add(settle); ; {
			err := netlink.LinkSetUp(l)
			if err == nil && waitPort(device, func(p port.Port) bool { return p.String() == was.String() }, time.Second) {
				return
			}
			if err == nil {
				err = readdress(l, device, addrs)
			}
			if time.Now().After(end) {
				p, _ := port.Read(device)
				t.Errorf("restore %s (%v): port 1 of %s is %v; it was %v", l.Attrs().Name, err, device, p, was)
				return
			}
		}
	})
	return l
}

// readdress gives the interface these addresses and no others. Each address gets the
// first index that is free, so their GIDs come one after the other, after the old ones
// have gone.
func readdress(l netlink.Link, device string, addrs []netlink.Addr) error {
	present, err := addresses(l)
	if err != nil {
		return err
	}
	for i := range present {
		if err := netlink.AddrDel(l, &present[i]); err != nil {
			return err
		}
	}
	waitPort(device, func(p port.Port) bool {
		return !slices.ContainsFunc(p.GIDs, func(g port.GID) bool { return !g.Addr.IsLinkLocalUnicast() })
	}, settle)
	for i := range addrs {
		if err := netlink.AddrAdd(l, &addrs[i]); err != nil {
			return err
		}
		waitPort(device, func(p port.Port) bool {
			return slices.ContainsFunc(p.GIDs, func(g port.GID) bool { return g.Addr.String() == addrs[i].IP.String() })
		}, settle)
	}
	return nil
}

// addresses are the interface's, without those of the link, which the kernel gives it.
func addresses(l netlink.Link) ([]netlink.Addr, error) {
	all, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	return slices.DeleteFunc(all, func(a netlink.Addr) bool { return a.IP.IsLinkLocalUnicast() }), err
}

// waitPort waits until the port is as wanted; false: it is not within the limit.
func waitPort(device string, wanted func(port.Port) bool, limit time.Duration) bool {
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		if p, err := port.Read(device); err == nil && wanted(p) {
			return true
		} else if time.Now().After(end) {
			return false
		}
	}
}
