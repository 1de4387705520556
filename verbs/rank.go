package verbs

import (
	"cmp"
	"slices"
)

// RankGIDs orders a port's GIDs by how good they are to connect from, best first,
// without changing its argument: RoCE v2 before InfiniBand before RoCE v1 (which no
// router forwards), and among them IPv4-mapped, then routable IPv6, then the rest,
// link-local last; then those whose network interface is known, then by index.
// Entries that are empty are left out.
//
// The first is the one to try first. When it fails (its network interface is gone,
// or of another network namespace), try the next.
func RankGIDs(gids []GIDEntry) []GIDEntry {
	ranked := slices.DeleteFunc(slices.Clone(gids), func(g GIDEntry) bool { return g.GID.IsZero() })
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
