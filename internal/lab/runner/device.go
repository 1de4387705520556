package runner

import (
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// IPv4GID gives the index of the first RoCE v2 GID that stands for an IPv4 address,
// of port 1 of a device of this host. It fails when the port is not ACTIVE.
//
// The files are those of Documentation/ABI/stable/sysfs-class-infiniband.
func IPv4GID(device string) (int, error) {
	dir := filepath.Join("/sys/class/infiniband", device)
	if _, err := os.Stat(dir); err != nil {
		return 0, errors.Errorf("RDMA device %s: no such device on this host", device)
	}
	port := filepath.Join(dir, "ports", "1")
	if state := line(filepath.Join(port, "state")); state != "4: ACTIVE" {
		return 0, errors.Errorf("RDMA device %s: port 1 is in state %q, not ACTIVE", device, state)
	}
	entries, err := os.ReadDir(filepath.Join(port, "gids"))
	if err != nil {
		return 0, errors.Wrapf(err, "RDMA device %s", device)
	}
	for i := range entries {
		n := strconv.Itoa(i)
		if strings.HasPrefix(line(filepath.Join(port, "gids", n)), "0000:0000:0000:0000:0000:ffff:") &&
			line(filepath.Join(port, "gid_attrs", "types", n)) == "RoCE v2" {
			return i, nil
		}
	}
	return 0, errors.Errorf("RDMA device %s: no RoCE v2 GID for IPv4: give its network interface an IPv4 address", device)
}

// gidAddr is the IP address that a GID stands for, "" when it cannot be read.
func gidAddr(device string, gid int) string {
	a, err := netip.ParseAddr(line(filepath.Join("/sys/class/infiniband", device, "ports", "1", "gids", strconv.Itoa(gid))))
	if err != nil {
		return ""
	}
	return a.Unmap().String()
}

// line reads a file of one line, "" when it cannot be read.
func line(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}
