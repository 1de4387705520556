package rdmacm

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Addresses lie in rooms of 28 bytes, the size of a struct sockaddr_in6: family in
// the host's order, port big-endian, then of IPv4 the address at 4, of IPv6 the flow at
// 4, the address at 8 and the scope in the host's order at 24 (linux/in.h, linux/in6.h).
const (
	sockaddrSize = 28
	familyIPv4   = 2  // AF_INET
	familyIPv6   = 10 // AF_INET6 of Linux
)

// putAddr writes an address to a zeroed room. The zero AddrPort leaves it zero: no
// address.
func putAddr(b []byte, a netip.AddrPort) error {
	if !a.Addr().IsValid() {
		return nil
	}
	binary.BigEndian.PutUint16(b[2:], a.Port())
	ip := a.Addr().Unmap()
	if ip.Is4() {
		binary.NativeEndian.PutUint16(b, familyIPv4)
		copy(b[4:8], ip.AsSlice())
		return nil
	}
	binary.NativeEndian.PutUint16(b, familyIPv6)
	copy(b[8:24], ip.AsSlice())
	if ip.Zone() == "" {
		return nil
	}
	scope, err := strconv.ParseUint(ip.Zone(), 10, 32)
	if err != nil {
		ifi, err := net.InterfaceByName(ip.Zone())
		if err != nil {
			return fmt.Errorf("zone %q: %w", ip.Zone(), err)
		}
		scope = uint64(ifi.Index)
	}
	binary.NativeEndian.PutUint32(b[24:], uint32(scope))
	return nil
}

// getAddr reads an address; the zero AddrPort is none. A scope becomes a zone by its
// number.
func getAddr(b []byte) netip.AddrPort {
	if len(b) < sockaddrSize {
		return netip.AddrPort{}
	}
	port := binary.BigEndian.Uint16(b[2:])
	switch binary.NativeEndian.Uint16(b) {
	case familyIPv4:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port)
	case familyIPv6:
		ip := netip.AddrFrom16([16]byte(b[8:24]))
		if scope := binary.NativeEndian.Uint32(b[24:]); scope != 0 {
			ip = ip.WithZone(strconv.FormatUint(uint64(scope), 10))
		}
		return netip.AddrPortFrom(ip, port)
	}
	return netip.AddrPort{}
}
