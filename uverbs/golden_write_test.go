//go:build linux

package uverbs

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"
)

// unwritten says why a recorded write is not compared, beyond leftOut. Kernels
// without verbs by ioctl are not supported: of these requests none is ever written.
// But one without an ioctl of its own goes through one that has the written struct
// inside.
var unwritten = map[string]string{
	"create_cq":  "by an ioctl of its own; package provider/mlx5 compares the driver's part",
	"create_qp":  "by an ioctl of its own; package provider/mlx5 compares the driver's part",
	"destroy_qp": "by an ioctl of its own", "destroy_cq": "by an ioctl of its own",
	"dereg_mr": "by an ioctl of its own", "dealloc_pd": "by an ioctl of its own",
}

// A struct that libibverbs writes to an older kernel is that of our ioctl of the same
// command, but for where the answer goes.
func TestGoldenWrites(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the vectors are of a little-endian host")
	}
	const header = 8 // struct ib_uverbs_cmd_hdr
	compared, left := map[string]int{}, map[string]int{}
	for _, g := range goldenCalls(t, "write") {
		if leftOut[g.Op] != "" || unwritten[g.Op] != "" {
			left[g.Op]++
			continue
		}
		if len(g.Raw) < 2*header {
			t.Errorf("%s: %q has no header", g.ID, g.Raw)
			continue
		}
		g.Attrs = []goldenAttr{{Name: "CORE_IN", Data: g.Raw[2*header:]}}
		k := newFake(t)
		c := k.open()
		c.core &^= coreOptionalMRAccess // such kernels do not say that they take unknown rights
		done, err := g.run(t, c)
		if err != nil || !done {
			t.Errorf("%s: no request for %s: %v", g.ID, g.Op, err)
			continue
		}
		got, a := k.last(), k.last().Attr("CORE_IN")
		want, err := hex.DecodeString(g.Raw)
		if err != nil || a == nil || got.Command != g.Command {
			t.Errorf("%s: command %d, attribute %v, want command %d (%v)", g.ID, got.Command, a, g.Command, err)
			continue
		}
		have := append(bytes.Clone(want[:header]), a.Bytes...)
		for _, v := range g.Volatile {
			clear(want[v[0] : v[0]+v[1]])
			clear(have[min(v[0], len(have)):min(v[0]+v[1], len(have))])
		}
		compared[g.Op]++
		if !bytes.Equal(have, want) {
			t.Errorf("%s: %s:\ngot  %x\nwant %x", g.ID, g.Op, have, want)
		}
	}
	t.Logf("compared: %v; left out: %v", compared, left)
	for _, op := range []string{"alloc_pd", "reg_mr", "create_comp_channel", "modify_qp_init", "modify_qp_rtr", "modify_qp_rts", "modify_qp_err"} {
		if compared[op] == 0 {
			t.Errorf("%s: no recorded write was compared", op)
		}
	}
}
