package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/verbs"
)

func TestRankGIDs(t *testing.T) {
	gid := func(index int, typ verbs.GIDType, s string) verbs.GIDEntry {
		var g verbs.GID
		if err := g.UnmarshalText([]byte(s)); err != nil {
			t.Fatal(err)
		}
		return verbs.GIDEntry{GID: g, Index: index, Type: typ}
	}
	// The usual table of a hardware NIC, with a routable IPv6 address besides.
	table := []verbs.GIDEntry{
		gid(0, verbs.GIDRoCEv1, "fe80::1"), gid(1, verbs.GIDRoCEv2, "fe80::1"), gid(2, verbs.GIDRoCEv1, "::ffff:10.0.0.1"),
		gid(3, verbs.GIDRoCEv2, "::ffff:10.0.0.1"), gid(4, verbs.GIDRoCEv1, "2001:db8::1"), gid(5, verbs.GIDRoCEv2, "2001:db8::1"),
		gid(6, verbs.GIDRoCEv2, "::ffff:10.0.0.2"), {Index: 7, Type: verbs.GIDRoCEv2}, gid(8, verbs.GIDInfiniBand, "fe80::2"),
	}
	var got []string
	for _, g := range RankGIDs(table) {
		got = append(got, fmt.Sprint(g.Index))
	}
	if want := "3 6 5 1 8 2 4 0"; strings.Join(got, " ") != want {
		t.Errorf("order %v, want %s", got, want)
	}
	if table[0].Index != 0 || table[7].Index != 7 {
		t.Error("the argument was changed")
	}
}
