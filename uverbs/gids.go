//go:build linux

package uverbs

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/verbs"
)

// GIDTable lists a port's GIDs that are in use and visible from this network
// namespace, by index. On kernels without the request it reads sysfs.
func (c *Context) GIDTable(port int) (gids []verbs.GIDEntry, err error) {
	err = c.withFallback(mQueryGIDTable,
		func() (err error) { gids, err = c.queryGIDTable(port); return err },
		func() (err error) { gids, err = c.sysfsGIDs(port); return err })
	return gids, err
}

func (c *Context) queryGIDTable(port int) ([]verbs.GIDEntry, error) {
	room := 1 // the answer covers all ports
	for n := 1; n <= c.dev.Ports; n++ {
		p, err := c.QueryPort(n)
		if err != nil {
			return nil, err
		}
		room += p.GIDs
	}
	room = min(room, math.MaxUint16/gidEntrySize) // an attribute's length has 16 bits; empty entries are not answered
	r, err := c.begin(mQueryGIDTable, room*gidEntrySize+8)
	if err != nil {
		return nil, err
	}
	defer r.release()
	r.constant(attrGIDEntrySize, gidEntrySize)
	r.flags(attrGIDFlags, 0)
	entries := r.out(attrGIDEntries, room*gidEntrySize)
	count := r.out(attrGIDNumEntries, 8)
	if errno := r.do(); errno != 0 {
		return nil, c.fail(r.m, fmt.Sprintf("of port %d, room for %d", port, room), errno)
	}
	n := min(u64(count), uint64(room))
	return gidEntries(entries[:n*gidEntrySize], port, c.sys.interfaces()), nil
}

// gidEntries decodes the entries of one port. names are the network interfaces of
// this namespace; an entry of another interface is left out. nil: not known.
func gidEntries(b []byte, port int, names map[int]string) []verbs.GIDEntry {
	var gids []verbs.GIDEntry
	for ; len(b) >= gidEntrySize; b = b[gidEntrySize:] {
		g := verbs.GIDEntry{
			GID: verbs.GID(gidEntryGID.In(b)[:16]), Index: int(gidEntryGIDIndex.Get(b)),
			Type: verbs.GIDType(gidEntryGIDType.Get(b)), IfIndex: int(gidEntryNetdevIfindex.Get(b)),
		}
		if int(gidEntryPortNum.Get(b)) != port || g.GID.IsZero() {
			continue
		}
		g.NetDev = names[g.IfIndex]
		if g.IfIndex != 0 && names != nil && g.NetDev == "" {
			continue
		}
		gids = append(gids, g)
	}
	slices.SortFunc(gids, func(a, b verbs.GIDEntry) int { return a.Index - b.Index })
	return gids
}

// GIDs reads a port's GIDs that are not empty from sysfs, by index, without opening
// the device. An entry whose network interface is not of this namespace is Hidden.
func (s *System) GIDs(device string, port int) ([]SeenGID, error) {
	in := func(more ...string) []string {
		return append([]string{"infiniband", device, "ports", strconv.Itoa(port)}, more...)
	}
	files, err := list(s.class(in("gids")...))
	if err == nil && len(files) == 0 {
		err = unix.ENOENT
	}
	if err != nil {
		return nil, &verbs.OpError{Op: "read GID table", Device: device, Object: fmt.Sprintf("of port %d", port), Err: err}
	}
	names, infiniband := s.interfaces(), s.read(in("link_layer")...) == "InfiniBand"
	var gids []SeenGID
	for _, file := range files {
		g, err := parseGID(s.read(in("gids", file)...))
		index, err2 := strconv.Atoi(file)
		if err != nil || err2 != nil || g.IsZero() {
			continue
		}
		e := SeenGID{GIDEntry: verbs.GIDEntry{GID: g, Index: index, Type: parseGIDType(s.read(in("gid_attrs", "types", file)...))}}
		if infiniband { // sysfs calls the type the same as RoCE v1
			e.Type = verbs.GIDInfiniBand
		}
		if e.Type != verbs.GIDInfiniBand {
			e.NetDev = s.read(in("gid_attrs", "ndevs", file)...)
			e.IfIndex = indexOf(names, e.NetDev)
			if e.NetDev != "" && names != nil && e.IfIndex == 0 {
				e.Hidden = "its network interface " + e.NetDev + " is not in this network namespace"
			}
		}
		gids = append(gids, e)
	}
	slices.SortFunc(gids, func(a, b SeenGID) int { return a.Index - b.Index })
	return gids, nil
}

func indexOf(names map[int]string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return 0
}

// sysfsGIDs gives the entries that can be used. An entry whose network interface
// cannot be read stays: only a connection attempt can tell.
func (c *Context) sysfsGIDs(port int) ([]verbs.GIDEntry, error) {
	seen, err := c.sys.GIDs(c.dev.Name, port)
	var gids []verbs.GIDEntry
	for _, g := range seen {
		if g.Hidden == "" {
			gids = append(gids, g.GIDEntry)
		}
	}
	return gids, err
}

// parseGID reads eight groups of four hex digits, as sysfs writes them.
func parseGID(s string) (g verbs.GID, err error) {
	parts := strings.Split(s, ":")
	if len(parts) != 8 {
		return g, fmt.Errorf("GID %q has %d groups, not 8", s, len(parts))
	}
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 16, 16)
		if err != nil {
			return g, fmt.Errorf("GID %q: %w", s, err)
		}
		binary.BigEndian.PutUint16(g[2*i:], uint16(v))
	}
	return g, nil
}

func parseGIDType(s string) verbs.GIDType {
	switch s {
	case "RoCE v2":
		return verbs.GIDRoCEv2
	case "IB/RoCE v1", "RoCE v1":
		return verbs.GIDRoCEv1
	}
	return verbs.GIDInfiniBand
}
