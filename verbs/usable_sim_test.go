package verbs_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// GIDs of another container's interface, which the table does not tell apart.
func TestUsableGID(t *testing.T) {
	for _, tt := range []struct {
		desc    string
		foreign []int
		want    int
		names   string // in the error
	}{
		{"none", nil, 0, ""},
		{"the first", []int{0}, 1, ""},
		{"two", []int{0, 1}, 2, ""},
		{"three: no more are tried", []int{0, 1, 2}, 0, "index 0 (::ffff:172.16.0.0), 1 (::ffff:172.16.0.1), 2 (::ffff:172.16.0.2)"},
	} {
		var table []sim.GID
		for i := range 5 {
			g := sim.GID{GIDEntry: verbs.GIDEntry{GID: verbs.GID{10: 0xff, 11: 0xff, 12: 172, 13: 16, 15: byte(i)}, Index: i, Type: verbs.GIDRoCEv2}}
			for _, f := range tt.foreign {
				g.Foreign = g.Foreign || f == i
			}
			table = append(table, g)
		}
		f := sim.NewFabric(sim.Config{})
		dev, err := f.NewDevice("a", sim.DeviceConfig{Ports: []sim.Port{{GIDs: table}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, err := dev.Open()
		if err != nil {
			t.Fatal(err)
		}
		gids, err := ctx.GIDs(1)
		if err != nil {
			t.Fatal(err)
		}
		g, err := verbs.UsableGID(ctx, 1, verbs.RankGIDs(gids))
		switch {
		case tt.names == "" && (err != nil || g.Index != tt.want):
			t.Errorf("%s: index %d, %v", tt.desc, g.Index, err)
		case tt.names != "" && (!errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), tt.names)):
			t.Errorf("%s: %v", tt.desc, err)
		}
		if err := ctx.Close(); err != nil { // nothing is left open
			t.Errorf("%s: %v", tt.desc, err)
		}
		f.Close()
	}
}
