//go:build linux

package uverbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

// isMissing reports that the kernel has no such method.
func isMissing(err error) bool { return errors.Is(err, syscall.EPROTONOSUPPORT) }

// QueryDevice asks for the device's limits.
func (c *Context) QueryDevice() (verbs.DeviceAttr, error) {
	r, err := c.begin(mQueryDevice, queryDeviceRespSize)
	if err != nil {
		return verbs.DeviceAttr{}, err
	}
	defer r.release()
	r.in(attrCoreIn, queryDeviceSize)
	out := r.out(attrCoreOut, queryDeviceRespSize)
	if errno := r.do(); errno != 0 {
		return verbs.DeviceAttr{}, c.fail(r.m, "", errno)
	}
	b := queryDeviceRespBase.In(out)
	v := deviceFwVer.Get(b)
	return verbs.DeviceAttr{
		FirmwareVersion: fmt.Sprintf("%d.%d.%d", v>>32, v>>16&0xffff, v&0xffff),
		VendorID:        deviceVendorID.Get(b), VendorPartID: deviceVendorPartID.Get(b), HWVersion: deviceHWVer.Get(b),
		MaxQP: int(deviceMaxQP.Get(b)), MaxQPWR: int(deviceMaxQPWR.Get(b)), MaxSGE: int(deviceMaxSGE.Get(b)),
		MaxCQ: int(deviceMaxCQ.Get(b)), MaxCQE: int(deviceMaxCQE.Get(b)), MaxMR: int(deviceMaxMR.Get(b)), MaxMRSize: deviceMaxMRSize.Get(b),
		MaxPD: int(deviceMaxPD.Get(b)), MaxReads: int(deviceMaxQPInitRdAtom.Get(b)), MaxDestReads: int(deviceMaxQPRdAtom.Get(b)),
		Atomics: deviceAtomicCap.Get(b) != 0, CompVectors: c.vectors, PageSizes: devicePageSizeCap.Get(b),
	}, nil
}

// QueryPort asks for a port's state; ports count from 1.
func (c *Context) QueryPort(port int) (verbs.PortAttr, error) {
	r, err := c.begin(mQueryPort, portRespSize)
	if err != nil {
		return verbs.PortAttr{}, err
	}
	defer r.release()
	r.constant(attrPortNum, uint64(port))
	b := r.out(attrPortResp, portRespSize)
	if errno := r.do(); errno != 0 {
		return verbs.PortAttr{}, c.fail(r.m, fmt.Sprintf("%d of %d", port, c.dev.Ports), errno)
	}
	width, speed := portWidth(portActiveWidth.Get(b)), laneGbps(portActiveSpeed.Get(b))
	return verbs.PortAttr{
		State: verbs.PortState(portState.Get(b)), LinkLayer: verbs.LinkLayer(portLinkLayer.Get(b)),
		MaxMTU: qp.MTU(portMaxMTU.Get(b)), ActiveMTU: qp.MTU(portActiveMTU.Get(b)), LID: portLID.Get(b),
		MaxMessage: portMaxMsgSz.Get(b), GIDs: int(portGIDTblLen.Get(b)), PKeys: int(portPKeyTblLen.Get(b)),
		Width: width, SpeedGbps: float64(width) * speed,
	}, nil
}

// portWidth decodes enum ib_port_width.
func portWidth(v uint8) int {
	switch v {
	case 1:
		return 1
	case 2:
		return 4
	case 4:
		return 8
	case 8:
		return 12
	case 16:
		return 2
	}
	return 0
}

// laneGbps decodes enum ib_port_speed.
func laneGbps(v uint8) float64 {
	switch v {
	case 1:
		return 2.5 // SDR
	case 2:
		return 5 // DDR
	case 4, 8:
		return 10 // QDR, FDR10
	case 16:
		return 14 // FDR
	case 32:
		return 25 // EDR
	case 64:
		return 50 // HDR
	case 128:
		return 100 // NDR
	}
	return 0
}

// GIDTable lists a port's GIDs that are in use and visible from this network
// namespace, by index. On kernels without the request it reads sysfs.
func (c *Context) GIDTable(port int) (gids []verbs.GIDEntry, err error) {
	err = c.withFallback(mQueryGIDTable,
		func() (err error) { gids, err = c.queryGIDTable(port); return err },
		func() (err error) { gids, err = c.sysfsGIDs(port); return err })
	return gids, err
}

func (c *Context) queryGIDTable(port int) ([]verbs.GIDEntry, error) {
	p, err := c.QueryPort(port)
	if err != nil {
		return nil, err
	}
	room := max(p.GIDs*c.dev.Ports, 1) // the answer covers all ports
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
	return gidEntries(entries[:n*gidEntrySize], port, interfaces()), nil
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

// interfaces gives the names of this namespace's network interfaces by index, nil
// if they cannot be listed.
func interfaces() map[int]string {
	list, err := net.Interfaces()
	if err != nil {
		return nil
	}
	names := make(map[int]string, len(list))
	for _, i := range list {
		names[i.Index] = i.Name
	}
	return names
}

// sysfsGIDs reads the table from sysfs. An entry whose network interface is of
// another namespace has an unreadable or unknown ndev, and is left out.
func (c *Context) sysfsGIDs(port int) ([]verbs.GIDEntry, error) {
	dir := []string{"infiniband", c.dev.Name, "ports", strconv.Itoa(port)}
	in := func(more ...string) []string { return append(slices.Clone(dir), more...) }
	names, err := list(c.sys.class(in("gids")...))
	if err == nil && len(names) == 0 {
		err = unix.ENOENT
	}
	if err != nil {
		return nil, &verbs.OpError{Op: "read GID table", Device: c.dev.Name, Object: fmt.Sprintf("of port %d", port), Err: err}
	}
	var gids []verbs.GIDEntry
	for _, name := range names {
		g, err := parseGID(c.sys.read(in("gids", name)...))
		index, err2 := strconv.Atoi(name)
		if err != nil || err2 != nil || g.IsZero() {
			continue
		}
		e := verbs.GIDEntry{GID: g, Index: index, Type: parseGIDType(c.sys.read(in("gid_attrs", "types", name)...))}
		if e.Type != verbs.GIDInfiniBand {
			e.NetDev = c.sys.read(in("gid_attrs", "ndevs", name)...)
			i, err := net.InterfaceByName(e.NetDev)
			if err != nil {
				continue
			}
			e.IfIndex = i.Index
		}
		gids = append(gids, e)
	}
	slices.SortFunc(gids, func(a, b verbs.GIDEntry) int { return a.Index - b.Index })
	return gids, nil
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
