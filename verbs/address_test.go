package verbs_test

import (
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/verbs"
)

func TestGlobal(t *testing.T) {
	v4 := func(n byte) verbs.GID { return verbs.GID{10: 0xff, 11: 0xff, 12: 10, 15: n} }
	ib := func(subnet, n byte) verbs.GID { return verbs.GID{0: 0xfe, 1: 0x80, 7: subnet, 15: n} }
	for _, tt := range []struct {
		desc   string
		a, b   verbs.Address
		global bool
		fails  string
	}{
		{"RoCE", verbs.Address{Link: verbs.LinkEthernet, GID: v4(1)}, verbs.Address{Link: verbs.LinkEthernet, GID: v4(2)}, true, ""},
		{"RoCE, no GID", verbs.Address{Link: verbs.LinkEthernet, GID: v4(1)}, verbs.Address{Link: verbs.LinkEthernet}, true, "RoCE without a GID"},
		{"one subnet", verbs.Address{Link: verbs.LinkInfiniBand, LID: 1, GID: ib(0, 1)}, verbs.Address{Link: verbs.LinkInfiniBand, LID: 2, GID: ib(0, 2)}, false, ""},
		{"no GIDs", verbs.Address{Link: verbs.LinkInfiniBand, LID: 1}, verbs.Address{Link: verbs.LinkInfiniBand, LID: 2}, false, ""},
		{"no LID", verbs.Address{Link: verbs.LinkInfiniBand, LID: 1}, verbs.Address{Link: verbs.LinkInfiniBand}, false, "subnet manager"},
		{"two subnets", verbs.Address{Link: verbs.LinkInfiniBand, LID: 1, GID: ib(0, 1)}, verbs.Address{Link: verbs.LinkInfiniBand, LID: 2, GID: ib(1, 2)}, true, "connect by rdma_cm"},
		{"two kinds", verbs.Address{Link: verbs.LinkInfiniBand, LID: 1, GID: ib(0, 1)}, verbs.Address{Link: verbs.LinkEthernet, GID: v4(2)}, false, "link layers differ"},
	} {
		for _, way := range [][2]verbs.Address{{tt.a, tt.b}, {tt.b, tt.a}} {
			global, err := way[0].Global(way[1])
			if global != tt.global || (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: %v, %v", tt.desc, global, err)
			}
		}
	}
}
