package testdev

import (
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// Interface gives the network interface below a software device, for tests that change
// it. It skips where others may use that: the lab's device is on a dummy interface.
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
	return l
}
