package verbs

import (
	"cmp"
	"fmt"
	"slices"
)

// MaxGIDIndex is the highest index of a GID that a queue pair can be brought up with:
// requests have 8 bits for it (ib_uverbs_qp_dest.sgid_index of the kernel's
// rdma/ib_user_verbs.h), though tables may be longer: rxe's has 1024 entries.
const MaxGIDIndex = 255

// RankGIDs orders a port's GIDs by how good they are to connect from, best first,
// without changing its argument: RoCE v2 before InfiniBand before RoCE v1 (which no
// router forwards), and among them IPv4-mapped, then routable IPv6, then the rest,
// link-local last; then those whose network interface is known, then by index.
// Entries that are empty are left out, and those beyond [MaxGIDIndex].
//
// The first is the one to try first. When it fails (its network interface is gone,
// or of another network namespace), try the next.
func RankGIDs(gids []GIDEntry) []GIDEntry {
	ranked := slices.DeleteFunc(slices.Clone(gids), func(g GIDEntry) bool { return g.GID.IsZero() || g.Index < 0 || g.Index > MaxGIDIndex })
	slices.SortStableFunc(ranked, func(a, b GIDEntry) int {
		return cmp.Or(
			cmp.Compare(a.typeRank(), b.typeRank()),
			cmp.Compare(a.addrRank(), b.addrRank()),
			cmp.Compare(a.interfaceRank(), b.interfaceRank()),
			cmp.Compare(a.Index, b.Index))
	})
	return ranked
}

func (g GIDEntry) typeRank() int {
	switch g.Type {
	case GIDRoCEv2:
		return 0
	case GIDInfiniBand:
		return 1
	}
	return 2
}

func (g GIDEntry) addrRank() int {
	switch {
	case g.GID.IsIPv4():
		return 0
	case g.GID.IsLinkLocal():
		return 2
	}
	return 1
}

// interfaceRank is about RoCE only: an InfiniBand GID has no network interface.
func (g GIDEntry) interfaceRank() int {
	if g.Type != GIDInfiniBand && g.NetDev == "" {
		return 1
	}
	return 0
}

// Merit says in words what decides the entry's place in [RankGIDs].
func (g GIDEntry) Merit() string {
	if g.GID.IsZero() {
		return "empty"
	}
	s := g.Type.String()
	if g.Type == GIDRoCEv1 {
		s += " (no router forwards it)"
	}
	s += [...]string{", IPv4 address", ", routable IPv6 address", ", link-local address"}[g.addrRank()]
	if g.interfaceRank() > 0 {
		s += ", network interface not known"
	}
	return s
}

// RankedPort is a port's place among those of its device.
type RankedPort struct {
	Port   int
	Attr   PortAttr
	GIDs   []GIDEntry // in the order of [RankGIDs]
	Usable bool       // ACTIVE, and with an address
	Why    string     // it can be used or not, and what decides its place
}

// RankPorts asks for all ports of an opened device and orders them, best first: those
// that are ACTIVE and have an address, then the faster, then by number.
func RankPorts(ctx Context) ([]RankedPort, error) {
	var ports []RankedPort
	for n := 1; n <= ctx.Info().Ports; n++ {
		p := RankedPort{Port: n}
		var err error
		if p.Attr, err = ctx.Port(n); err != nil {
			return nil, err
		}
		gids, err := ctx.GIDs(n)
		if err != nil {
			return nil, err
		}
		p.GIDs = RankGIDs(gids)
		p.judge()
		ports = append(ports, p)
	}
	slices.SortStableFunc(ports, func(a, b RankedPort) int {
		switch {
		case a.Usable != b.Usable && a.Usable:
			return -1
		case a.Usable != b.Usable:
			return 1
		}
		return cmp.Compare(b.Attr.SpeedGbps, a.Attr.SpeedGbps)
	})
	return ports, nil
}

func (p *RankedPort) judge() {
	switch a := &p.Attr; {
	case a.State != PortActive:
		p.Why = fmt.Sprintf("%v, not ACTIVE", a.State)
	case len(p.GIDs) == 0 && a.LinkLayer != LinkInfiniBand:
		p.Why = "ACTIVE, but has no GID: its network interface has no address"
	case a.LinkLayer == LinkInfiniBand && a.LID == 0 && len(p.GIDs) == 0:
		p.Why = "ACTIVE, but has no LID: no subnet manager has found it"
	default:
		p.Usable = true
		p.Why = fmt.Sprintf("ACTIVE, %g Gbit/s", a.SpeedGbps)
	}
}

// BestPort is the first of [RankPorts]; 1 if none can be used.
func BestPort(ctx Context) (int, error) {
	ports, err := RankPorts(ctx)
	if err != nil {
		return 0, err
	}
	if len(ports) == 0 || !ports[0].Usable {
		return 1, nil
	}
	return ports[0].Port, nil
}
