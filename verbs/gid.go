package verbs

import (
	"fmt"
	"net/netip"
)

// GID is a global identifier of a port, 16 bytes in network order. For RoCE v2 it
// is an IPv6 address, or an IPv4-mapped one.
type GID [16]byte

// IsZero reports an empty table entry.
func (g GID) IsZero() bool { return g == GID{} }

// Addr is the GID as an IP address, IPv4 when it is IPv4-mapped.
func (g GID) Addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

// IsIPv4 reports an IPv4-mapped GID.
func (g GID) IsIPv4() bool { return netip.AddrFrom16(g).Is4In6() }

// IsLinkLocal reports an fe80::/10 GID.
func (g GID) IsLinkLocal() bool { return netip.AddrFrom16(g).IsLinkLocalUnicast() }

// String is the GID as an IPv6 address, "::ffff:10.9.0.1" when IPv4-mapped.
func (g GID) String() string { return netip.AddrFrom16(g).String() }

// MarshalText makes the GID its String.
func (g GID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText reads what String writes, and plain IPv4 addresses.
func (g *GID) UnmarshalText(b []byte) error {
	a, err := netip.ParseAddr(string(b))
	if err != nil || a.Zone() != "" {
		return fmt.Errorf("GID %q is neither an IPv6 nor an IPv4 address", b)
	}
	*g = GID(a.As16())
	return nil
}

// GIDType says which packets a GID is for (enum ib_uverbs_gid_type).
type GIDType uint8

// The GID types. Two ports can talk only by GIDs of the same type.
const (
	GIDInfiniBand GIDType = 0
	GIDRoCEv1     GIDType = 1
	GIDRoCEv2     GIDType = 2
)

// String is the type's common name.
func (t GIDType) String() string {
	switch t {
	case GIDInfiniBand:
		return "IB"
	case GIDRoCEv1:
		return "RoCE v1"
	case GIDRoCEv2:
		return "RoCE v2"
	}
	return fmt.Sprintf("TYPE_%d", uint8(t))
}

// GIDEntry is one used entry of a port's GID table.
type GIDEntry struct {
	GID     GID
	Index   int
	Type    GIDType
	NetDev  string // the network interface it belongs to, if known
	IfIndex int    // its index, 0 if none
}
