//go:build linux

package mlx5_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// goldenCall is a request or mapping as libibverbs and its driver make it for the same
// verb on an mlx5 device.
type goldenCall struct {
	ID, Kind, Ctx, Op string
	Object            uint16 `json:"object_id"`
	Method            uint16 `json:"method_id"`
	DriverID          uint32 `json:"driver_id"`
	Attrs             []goldenAttr
	Raw               string   // of a write
	Volatile          [][2]int `json:"raw_volatile"`
	Command           uint32   // likewise
	Length            int      // of a mapping
	Offset            string   // likewise
	Prot, Flags       int      // likewise
	Args              struct {
		CQE     int
		Vector  int `json:"comp_vector"`
		Type    string
		SigAll  int `json:"sq_sig_all"`
		SendWR  int `json:"max_send_wr"`
		RecvWR  int `json:"max_recv_wr"`
		SendSGE int `json:"max_send_sge"`
		RecvSGE int `json:"max_recv_sge"`
		Inline  int `json:"max_inline_data"`
	}
}

type goldenAttr struct {
	ID       uint16
	Name     string
	Len      int
	Flags    uint16
	Kind     string
	Data     string
	Volatile [][2]int
}

func goldenCalls(t *testing.T) (calls []goldenCall) {
	t.Helper()
	mlx5.GoldenLines(t, "uverbs", func(b []byte) {
		var g goldenCall
		must(t, json.Unmarshal(b, &g))
		if g.Kind == "write" {
			g.asIoctl(t)
		}
		calls = append(calls, g)
	})
	return calls
}

// asIoctl gives a write the attribute in which an ioctl has the driver's part of it.
func (g *goldenCall) asIoctl(t *testing.T) {
	at := map[string]int{"open_device": 16, "create_cq": 40, "create_qp": 64}[g.Op] // header and struct of libibverbs
	if at == 0 || len(g.Raw) <= 2*at || g.Op == "open_device" && g.Command != 0 {   // 0: of a context
		return
	}
	a := goldenAttr{ID: 0x1000, Name: "UHW_IN", Len: len(g.Raw)/2 - at, Flags: 1, Kind: "in_ptr", Data: g.Raw[2*at:]}
	for _, v := range g.Volatile {
		if v[0] >= at {
			a.Volatile = append(a.Volatile, [2]int{v[0] - at, v[1]})
		}
	}
	g.Attrs = []goldenAttr{a}
}

// recorder keeps a copy of each request that passes.
type recorder struct{ calls []uverbs.Call }

func (r *recorder) record(s *uverbs.System) *uverbs.System {
	below := s.Ioctl
	s.Ioctl = func(fd int, page []byte) syscall.Errno {
		if c, err := uverbs.Decode(page); err == nil {
			k := *c
			k.Attrs = slices.Clone(c.Attrs)
			for i := range k.Attrs {
				k.Attrs[i].Bytes = bytes.Clone(k.Attrs[i].Bytes)
			}
			r.calls = append(r.calls, k)
		}
		return below(fd, page)
	}
	return s
}

// Requests whose payload is the driver's have the attributes, sizes, flags and
// bytes of libibverbs', but for:
//   - addresses, and numbers that kernel or library hand out: registers, user indexes;
//   - the completion channel, which every completion queue has here.
//
// rdma-core lets the NIC put payload into completions if not told otherwise; here it
// is asked for.
//
// The other requests are the same for all drivers: package uverbs compares them. Of a
// write to a kernel without verbs by ioctl, which is not supported here, the driver's
// part is compared. Mappings of registers that the kernel gave at once are compared;
// where those lie that are asked for one by one is the kernel's choice.
func TestGoldenCalls(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 || !mmio.HasBarriers || os.Getpagesize() != 4096 {
		t.Skip("the vectors are of a little-endian host with pages of 4 KiB")
	}
	kinds := map[string]mlx5dev.Config{"ioctl_static_bfreg": {BFRegs: 16}, "ioctl_dynamic_uar": {}, "ioctl_cqe_v0": {BFRegs: 16, CQEVersion0: true}, "write_fallback": {BFRegs: 16}}
	lines := map[string][]goldenCall{}
	for _, g := range goldenCalls(t) {
		if _, ok := kinds[g.Ctx]; !ok {
			t.Errorf("%s: context %q is not known", g.ID, g.Ctx)
		}
		lines[g.Ctx] = append(lines[g.Ctx], g)
	}
	compared, left := map[string]int{}, map[string]int{}
	for name, cfg := range kinds {
		for _, g := range lines[name] {
			b := newGoldenBench(t, cfg) // of its own: what a line is does not depend on those before
			if why := b.replay(t, &g); why != "" {
				left[why]++
			} else {
				compared[g.Ctx+" "+g.Op+" "+g.Kind]++
			}
			b.close(t)
		}
	}
	t.Logf("compared: %v", compared)
	t.Logf("left out: %v", left)
	for _, want := range []string{
		"ioctl_dynamic_uar open_device ioctl", "ioctl_dynamic_uar alloc_pd ioctl", "ioctl_dynamic_uar create_cq ioctl", "ioctl_dynamic_uar create_qp ioctl",
		"ioctl_static_bfreg open_device ioctl", "ioctl_static_bfreg alloc_pd ioctl", "ioctl_static_bfreg create_cq ioctl", "ioctl_static_bfreg create_qp ioctl",
		"ioctl_static_bfreg open_device mmap", "write_fallback open_device write", "write_fallback create_cq write", "write_fallback create_qp write",
	} {
		if compared[want] == 0 {
			t.Errorf("%s: no recorded line was compared", want)
		}
	}
}

// goldenBench is a device whose requests are looked at.
type goldenBench struct {
	recorder
	fabric *sim.Fabric
	ctx    verbs.Context
	pd     verbs.PD
	cq     cq.CQ
}

func newGoldenBench(t *testing.T, cfg mlx5dev.Config) *goldenBench {
	b := &goldenBench{fabric: sim.NewFabric(sim.Config{})}
	hw, err := b.fabric.NewDevice("mlx5_0", mlx5dev.SimConfig())
	must(t, err)
	m := mlx5dev.New(hw, cfg)
	b.ctx, err = mlx5.NewObserved(b.record(m.System()), m.Node(), m).With(mlx5.Settings{Inside: true}).Open()
	must(t, err)
	b.pd, err = b.ctx.AllocPD()
	must(t, err)
	b.cq, err = b.ctx.CreateCQ(verbs.CQConfig{Entries: 8})
	must(t, err)
	return b
}

func (b *goldenBench) close(t *testing.T) {
	must(t, b.cq.Close())
	must(t, b.pd.Close())
	must(t, b.ctx.Close())
	must(t, b.fabric.Close())
}

// elsewhere are the requests that do not depend on the driver.
var elsewhere = []string{"reg_mr", "reg_mr_iova", "reg_mr_relaxed_ordering", "reg_dmabuf_mr", "create_comp_channel", "modify_qp_init", "modify_qp_rtr", "modify_qp_rts",
	"modify_qp_err", "destroy_qp", "destroy_cq", "dereg_mr", "dealloc_pd"}

// replay makes a line's request and compares it. why: it is not compared.
func (b *goldenBench) replay(t *testing.T, g *goldenCall) (why string) {
	switch {
	case slices.Contains(elsewhere, g.Op) && g.Kind != "mmap":
		return "the same for all drivers"
	case g.Kind == "mmap":
		return b.mapping(t, g)
	case g.Kind != "ioctl" && g.Kind != "write":
		t.Errorf("%s: kind %q is not known", g.ID, g.Kind)
		return "unknown kind"
	case g.Kind == "write" && len(g.Attrs) == 0:
		return "a write without a driver's part"
	}
	a := &g.Args
	switch g.Op {
	case "create_cq":
		q, err := b.ctx.CreateCQ(verbs.CQConfig{Entries: a.CQE, Vector: a.Vector})
		must(t, err)
		must(t, q.Close())
	case "create_qp":
		if a.Type != "RC" {
			return "a queue pair of another transport"
		}
		q, err := b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, SigAll: a.SigAll != 0,
			Caps: qp.Caps{SendWR: a.SendWR, RecvWR: a.RecvWR, SendSGE: a.SendSGE, RecvSGE: a.RecvSGE, Inline: a.Inline}})
		must(t, err)
		must(t, q.Close())
	case "alloc_pd":
	case "open_device":
		if g.Kind == "ioctl" && g.Object == 0 && g.Method == 0 {
			return "limits that the driver tells only its library"
		}
	default:
		t.Errorf("%s: request %q is not known", g.ID, g.Op)
		return "unknown request"
	}
	i := -1
	for k := range b.calls { // the newest
		c := &b.calls[k]
		if g.Kind == "write" && writeOps[g.Op] == c.Op || g.Kind == "ioctl" && c.Object == g.Object && c.Method == g.Method && g.drives(c) {
			i = k
		}
	}
	if i < 0 { // DEVX, port, driver
		return "the library's own questions"
	}
	g.compare(t, &b.calls[i])
	return ""
}

// writeOps are the names here of what is compared of writes.
var writeOps = map[string]string{"open_device": "open context", "create_cq": "create completion queue", "create_qp": "create queue pair"}

// mapping compares a mapping of registers.
func (b *goldenBench) mapping(t *testing.T, g *goldenCall) (why string) {
	if g.Ctx == "ioctl_dynamic_uar" {
		return "registers whose place the kernel chooses"
	}
	off, err := strconv.ParseInt(g.Offset, 0, 64)
	must(t, err)
	if n, ok := mlx5.Mapped(b.ctx)[off]; !ok || n != g.Length || g.Prot != syscall.PROT_WRITE || g.Flags != syscall.MAP_SHARED {
		t.Errorf("%s: %d bytes at %#x, protection %d, flags %d; ours %v", g.ID, g.Length, off, g.Prot, g.Flags, mlx5.Mapped(b.ctx))
	}
	return ""
}

// drives reports whether a call of INVOKE_WRITE carries the same command.
func (g *goldenCall) drives(c *uverbs.Call) bool {
	if g.Object != 0 || g.Method != 0 {
		return true
	}
	cmd, _ := hex.DecodeString(g.Attrs[0].Data)
	return uint64(c.Command) == binary.LittleEndian.Uint64(cmd)
}

func (g *goldenCall) compare(t *testing.T, got *uverbs.Call) {
	t.Helper()
	if g.Kind == "ioctl" && uint32(got.DriverID) != g.DriverID {
		t.Errorf("%s: driver %d, want %d", g.ID, got.DriverID, g.DriverID)
	}
	for _, a := range got.Attrs {
		if g.Kind == "ioctl" && a.Name != "COMP_CHANNEL" && !slices.ContainsFunc(g.Attrs, func(w goldenAttr) bool { return w.ID == a.ID }) {
			t.Errorf("%s: extra attribute %s", g.ID, a.Name)
		}
	}
	for _, w := range g.Attrs {
		a := got.Attr(w.Name)
		if a == nil {
			t.Errorf("%s: %s is missing", g.ID, w.Name)
			continue
		}
		if a.ID != w.ID || a.Flags != w.Flags || len(a.Bytes) != w.Len {
			t.Errorf("%s: %s: id %d, flags %d, %d bytes; want %d, %d, %d", g.ID, w.Name, a.ID, a.Flags, len(a.Bytes), w.ID, w.Flags, w.Len)
			continue
		}
		if w.Kind != "in_inline" && w.Kind != "in_ptr" {
			continue
		}
		want, err := hex.DecodeString(w.Data)
		must(t, err)
		have := bytes.Clone(a.Bytes)
		for _, v := range w.Volatile {
			clear(want[v[0] : v[0]+v[1]])
			clear(have[v[0] : v[0]+v[1]])
		}
		if w.Name == "UHW_IN" && g.Op == "create_qp" {
			if g.Ctx != "ioctl_cqe_v0" {
				clear(want[32:36])
				clear(have[32:36])
			}
			clear(want[36:40])
			clear(have[36:40])
		}
		if w.Name == "UHW_IN" && g.Op == "create_cq" {
			clear(want[24:26])
			clear(have[24:26])
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s: %s:\ngot  %x\nwant %x", g.ID, w.Name, have, want)
		}
	}
}
