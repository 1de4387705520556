package verbs

import (
	"fmt"
	"strings"
	"testing"
)

func TestRankGIDs(t *testing.T) {
	gid := func(index int, typ GIDType, s string) GIDEntry {
		var g GID
		if err := g.UnmarshalText([]byte(s)); err != nil {
			t.Fatal(err)
		}
		return GIDEntry{GID: g, Index: index, Type: typ}
	}
	// The usual table of a hardware NIC, with a routable IPv6 address besides.
	table := []GIDEntry{
		gid(0, GIDRoCEv1, "fe80::1"), gid(1, GIDRoCEv2, "fe80::1"), gid(2, GIDRoCEv1, "::ffff:10.0.0.1"),
		gid(3, GIDRoCEv2, "::ffff:10.0.0.1"), gid(4, GIDRoCEv1, "2001:db8::1"), gid(5, GIDRoCEv2, "2001:db8::1"),
		gid(6, GIDRoCEv2, "::ffff:10.0.0.2"), {Index: 7, Type: GIDRoCEv2}, gid(8, GIDInfiniBand, "fe80::2"),
	}
	var got []string
	for _, g := range RankGIDs(table) {
		got = append(got, fmt.Sprint(g.Index))
	}
	if want := "3 6 5 1 8 2 4 0"; strings.Join(got, " ") != want {
		t.Errorf("order %v, want %s", got, want)
	}
	for want, g := range map[string]GIDEntry{
		"RoCE v2, IPv4 address": {GID: table[3].GID, Type: GIDRoCEv2, NetDev: "eth0"},
		"RoCE v1 (no router forwards it), link-local address, network interface not known": table[0],
		"RoCE v2, routable IPv6 address, network interface not known":                      table[5],
		"IB, link-local address": table[8],
		"empty":                  table[7],
	} {
		if got := g.Merit(); got != want {
			t.Errorf("merit %q, want %q", got, want)
		}
	}
	known := table[6]
	known.NetDev = "eth0"
	if got := RankGIDs([]GIDEntry{table[3], known}); got[0].Index != 6 {
		t.Errorf("an entry of an unknown interface comes before one of a known: %+v", got)
	}
	if table[0].Index != 0 || table[7].Index != 7 {
		t.Error("the argument was changed")
	}
}
