//go:build linux

package uverbs

import (
	"fmt"
	"slices"
	"testing"

	"github.com/byteexpress/byteexpress/verbs"
)

// twoInterfaces are those of the process's network namespace.
func twoInterfaces() (map[int]string, error) { return map[int]string{1: "lo", 2: "eth0"}, nil }

func TestSysfsGIDs(t *testing.T) {
	k := newFake(t)
	c := k.open()
	c.sys.SysRoot, c.sys.Interfaces = writeTree(t, rxeTree()), twoInterfaces
	c.dev.Name = "rxe0"
	gids, err := c.sysfsGIDs(1)
	if err != nil || len(gids) != 2 || gids[0].Index != 0 || !gids[0].GID.IsLinkLocal() || gids[1].GID.String() != "::ffff:10.9.0.1" ||
		gids[1].Type != verbs.GIDRoCEv2 || gids[1].NetDev != "lo" || gids[1].IfIndex != 1 {
		t.Errorf("GIDs %+v, %v", gids, err)
	}
	if _, err := c.sysfsGIDs(2); err == nil {
		t.Error("a port that is not there has GIDs")
	}
}

// The kernel answers for all ports at once, whose tables may differ in length, and
// no attribute can be longer than 65535 bytes.
func TestRoomForGIDs(t *testing.T) {
	k := newFake(t)
	c := k.open()
	for n, want := range map[int]int{1: 1025, 2: 2047, 3: 2047} {
		c.dev.Ports, k.calls = n, nil
		if _, err := c.GIDTable(1); err != nil {
			t.Fatal(err)
		}
		asked := 0
		for i := range k.calls {
			if k.calls[i].Attr("PORT_NUM") != nil {
				asked++
			}
		}
		if room := len(k.last().Attr("RESP_ENTRIES").Bytes) / gidEntrySize; asked != n || room != want {
			t.Errorf("%d ports: asked %d, room for %d entries, want %d", n, asked, room, want)
		}
	}
}

// Case C03: of 8 GIDs those at 5 and 7 are of other containers' interfaces, and that of 3
// does not tell its interface.
func TestGIDsOfAnotherContainer(t *testing.T) {
	files := rxeTree()
	dir := "class/infiniband/rxe0/ports/1/"
	for i := range 8 {
		files[dir+fmt.Sprintf("gids/%d", i)] = fmt.Sprintf("0000:0000:0000:0000:0000:ffff:0a09:000%d", i+1)
		files[dir+fmt.Sprintf("gid_attrs/types/%d", i)] = "RoCE v2"
		files[dir+fmt.Sprintf("gid_attrs/ndevs/%d", i)] = "eth0"
	}
	files[dir+"gid_attrs/ndevs/5"], files[dir+"gid_attrs/ndevs/7"] = "pod5", "pod7"
	delete(files, dir+"gid_attrs/ndevs/3")
	k := newFake(t)
	c := k.open()
	c.sys.SysRoot, c.sys.Interfaces, c.dev.Name = writeTree(t, files), twoInterfaces, "rxe0"
	gids, err := c.sysfsGIDs(1)
	if got := ranked(gids); err != nil || !slices.Equal(got, []int{0, 1, 2, 4, 6, 3}) {
		t.Errorf("order %v, %v", got, err)
	}
	seen, err := c.sys.GIDs("rxe0", 1)
	if err != nil || len(seen) != 8 || seen[5].Hidden != "its network interface pod5 is not in this network namespace" || seen[3].Hidden != "" {
		t.Errorf("seen %+v, %v", seen, err)
	}
	// Control: when the interfaces cannot be listed, none can be told from another.
	c.sys.Interfaces = func() (map[int]string, error) { return nil, fmt.Errorf("no netlink") }
	if gids, err := c.sysfsGIDs(1); err != nil || len(gids) != 8 {
		t.Errorf("without a list of interfaces: %+v, %v", gids, err)
	}
}

func ranked(gids []verbs.GIDEntry) (indexes []int) {
	for _, g := range verbs.RankGIDs(gids) {
		indexes = append(indexes, g.Index)
	}
	return indexes
}

// Entries of a network interface that is of another namespace are left out, if the
// interfaces can be listed.
func TestGIDsOfOtherNamespaces(t *testing.T) {
	var table []byte
	for i, ifindex := range []uint32{2, 2, 9, 0} {
		e := make([]byte, gidEntrySize)
		e[0], e[15] = 0xfe, byte(i+1)
		gidEntryGIDIndex.Put(e, uint32(10-i))
		gidEntryPortNum.Put(e, 1)
		gidEntryGIDType.Put(e, uint32(verbs.GIDRoCEv2))
		gidEntryNetdevIfindex.Put(e, ifindex)
		table = append(table, e...)
	}
	var got []int
	for _, g := range gidEntries(table, 1, map[int]string{2: "eth0"}) {
		got = append(got, g.Index)
	}
	if !slices.Equal(got, []int{7, 9, 10}) {
		t.Errorf("indexes %v", got)
	}
	if n := len(gidEntries(table, 1, nil)); n != 4 {
		t.Errorf("%d entries without a list of interfaces", n)
	}
	if n := len(gidEntries(table, 2, nil)); n != 0 {
		t.Errorf("%d entries of port 2", n)
	}
}

func FuzzGIDEntries(f *testing.F) {
	e := make([]byte, gidEntrySize)
	e[15] = 1
	gidEntryPortNum.Put(e, 1)
	f.Add(e)
	f.Fuzz(func(t *testing.T, b []byte) {
		gids := gidEntries(b, 1, map[int]string{1: "eth0"})
		if len(gids) > len(b)/gidEntrySize {
			t.Fatalf("%d entries of %d bytes", len(gids), len(b))
		}
		for _, g := range gids {
			if g.GID.IsZero() {
				t.Fatal("an empty entry")
			}
		}
	})
}
