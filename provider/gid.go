package provider

import (
	"cmp"
	"slices"

	"github.com/byteexpress/byteexpress/verbs"
)

// RankGIDs orders a port's GIDs by how good they are to connect from, best first,
// without changing its argument: RoCE v2 before InfiniBand before RoCE v1 (which no
// router forwards), and among them IPv4-mapped, then routable IPv6, then the rest,
// link-local last; by index among equals. Entries that are empty are left out.
//
// The first is the one to try first. When it fails (its network interface is gone,
// or of another network namespace), try the next.
func RankGIDs(gids []verbs.GIDEntry) []verbs.GIDEntry {
	ranked := slices.DeleteFunc(slices.Clone(gids), func(g verbs.GIDEntry) bool { return g.GID.IsZero() })
	slices.SortStableFunc(ranked, func(a, b verbs.GIDEntry) int {
		return cmp.Or(
			cmp.Compare(typeRank(a.Type), typeRank(b.Type)),
			cmp.Compare(addrRank(a.GID), addrRank(b.GID)),
			cmp.Compare(a.Index, b.Index))
	})
	return ranked
}

func typeRank(t verbs.GIDType) int {
	switch t {
	case verbs.GIDRoCEv2:
		return 0
	case verbs.GIDInfiniBand:
		return 1
	}
	return 2
}

func addrRank(g verbs.GID) int {
	switch {
	case g.IsIPv4():
		return 0
	case g.IsLinkLocal():
		return 2
	}
	return 1
}
