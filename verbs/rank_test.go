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

// ranker is a device with ports only.
type ranker struct {
	Context
	ports []PortAttr
	gids  [][]GIDEntry
}

func (r *ranker) Info() DeviceInfo               { return DeviceInfo{Ports: len(r.ports)} }
func (r *ranker) Port(n int) (PortAttr, error)   { return r.ports[n-1], nil }
func (r *ranker) GIDs(n int) ([]GIDEntry, error) { return r.gids[n-1], nil }
func oneGID() []GIDEntry                         { return []GIDEntry{{GID: GID{15: 1}, Type: GIDRoCEv2}} }
func ethernet(s PortState, gbps float64) PortAttr {
	return PortAttr{State: s, LinkLayer: LinkEthernet, SpeedGbps: gbps}
}
func infiniband(lid uint16, gbps float64) PortAttr {
	return PortAttr{State: PortActive, LinkLayer: LinkInfiniBand, LID: lid, SpeedGbps: gbps}
}

func TestRankPorts(t *testing.T) {
	r := &ranker{
		ports: []PortAttr{ethernet(PortDown, 400), ethernet(PortActive, 100), ethernet(PortActive, 100), ethernet(PortActive, 800), infiniband(0, 400), infiniband(7, 200)},
		gids:  [][]GIDEntry{oneGID(), oneGID(), oneGID(), nil, nil, nil},
	}
	ports, err := RankPorts(r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range ports {
		got = append(got, fmt.Sprintf("%d %v %s", p.Port, p.Usable, p.Why))
	}
	want := []string{
		"6 true ACTIVE, 200 Gbit/s", "2 true ACTIVE, 100 Gbit/s", "3 true ACTIVE, 100 Gbit/s",
		"4 false ACTIVE, but has no GID: its network interface has no address", "1 false DOWN, not ACTIVE",
		"5 false ACTIVE, but has no LID: no subnet manager has found it",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("order:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n, err := BestPort(r); n != 6 || err != nil {
		t.Errorf("best port %d, %v", n, err)
	}
	r.ports, r.gids = r.ports[:1], r.gids[:1]
	if n, err := BestPort(r); n != 1 || err != nil {
		t.Errorf("best of none that can be used: %d, %v", n, err)
	}
}

// A GID whose index no request has room for is not taken: cut to 8 bits it would be
// another's.
func TestGIDBeyondIndex(t *testing.T) {
	table := []GIDEntry{
		{GID: GID{10: 0xff, 11: 0xff, 12: 10}, Index: 256, Type: GIDRoCEv2},
		{GID: GID{0: 0xfe, 1: 0x80, 15: 1}, Index: 255, Type: GIDRoCEv1},
		{GID: GID{0: 0xfe, 1: 0x80, 15: 2}, Index: -1, Type: GIDRoCEv2},
	}
	if got := RankGIDs(table); len(got) != 1 || got[0].Index != 255 {
		t.Errorf("ranked %+v", got)
	}
}
