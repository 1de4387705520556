// Package port reads the state of port 1 of this host's RDMA devices from sysfs. It
// opens no device, so it can look at one that a process under test uses.
//
// The files are those of Documentation/ABI/stable/sysfs-class-infiniband.
package port

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// GID is an entry of the port's GID table that is in use.
type GID struct {
	Index int
	Addr  netip.Addr
	Type  string // as "RoCE v2"
}

// Port is what sysfs tells of a port.
type Port struct {
	State string // as "4: ACTIVE"
	GIDs  []GID  // in the order of their indices
}

// Read gives the port of a device. It fails when there is no such device.
func Read(device string) (p Port, err error) {
	dir := dir(device)
	if p.State = line(filepath.Join(dir, "state")); p.State == "" {
		return p, errors.Errorf("RDMA device %s: no such device on this host", device)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "gids"))
	if err != nil {
		return p, errors.Wrapf(err, "RDMA device %s", device)
	}
	for i := range entries {
		n := strconv.Itoa(i)
		a, err := netip.ParseAddr(line(filepath.Join(dir, "gids", n)))
		if err == nil && !a.IsUnspecified() {
			p.GIDs = append(p.GIDs, GID{i, a.Unmap(), line(filepath.Join(dir, "gid_attrs", "types", n))})
		}
	}
	return p, nil
}

// String has all of the port in one line: two that have the same are the same.
func (p Port) String() string {
	var b strings.Builder
	b.WriteString(p.State)
	for _, g := range p.GIDs {
		fmt.Fprintf(&b, ", GID %d %v (%s)", g.Index, g.Addr, g.Type)
	}
	return b.String()
}

// IPv4GID gives the first RoCE v2 GID that stands for an IPv4 address, of a device of
// this host. It fails when the port is not ACTIVE.
func IPv4GID(device string) (GID, error) {
	p, err := Read(device)
	if err != nil {
		return GID{}, err
	}
	if p.State != "4: ACTIVE" {
		return GID{}, errors.Errorf("RDMA device %s: port 1 is in state %q, not ACTIVE", device, p.State)
	}
	for _, g := range p.GIDs {
		if g.Addr.Is4() && g.Type == "RoCE v2" {
			return g, nil
		}
	}
	return GID{}, errors.Errorf("RDMA device %s: no RoCE v2 GID for IPv4: give its network interface an IPv4 address", device)
}

// Counters gives the port's counters that are not 0, as "sent_pkts 7", by name.
func Counters(device string) (out []string) {
	files, _ := filepath.Glob(filepath.Join(dir(device), "hw_counters", "*"))
	for _, f := range files {
		if n, err := strconv.ParseUint(line(f), 10, 64); err == nil && n > 0 && filepath.Base(f) != "lifespan" {
			out = append(out, fmt.Sprintf("%s %d", filepath.Base(f), n))
		}
	}
	return out
}

func dir(device string) string {
	return filepath.Join("/sys/class/infiniband", device, "ports", "1")
}

// line reads a file of one line, "" when it cannot be read.
func line(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}
