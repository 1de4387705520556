//go:build linux

package mlx5_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// goldenCall is a request as libibverbs makes it for the same verb on an mlx5
// device.
type goldenCall struct {
	ID, Kind, Ctx, Op string
	Object            uint16 `json:"object_id"`
	Method            uint16 `json:"method_id"`
	DriverID          uint32 `json:"driver_id"`
	Attrs             []goldenAttr
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
	f, err := os.Open("testdata/uverbs.jsonl.gz")
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var g goldenCall
		must(t, json.Unmarshal(s.Bytes(), &g))
		if g.Kind == "ioctl" && g.Ctx != "write_fallback" {
			calls = append(calls, g)
		}
	}
	return calls
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
// The other requests are the same for all drivers: package uverbs compares them.
func TestGoldenCalls(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 || !mmio.HasBarriers {
		t.Skip("the vectors are of a little-endian host")
	}
	compared := map[string]int{}
	for _, kind := range []struct {
		ctx string
		cfg mlx5dev.Config
	}{
		{"ioctl_static_bfreg", mlx5dev.Config{BFRegs: 16}}, {"ioctl_dynamic_uar", mlx5dev.Config{}}, {"ioctl_cqe_v0", mlx5dev.Config{BFRegs: 16, CQEVersion0: true}},
	} {
		f := sim.NewFabric(sim.Config{})
		hw, err := f.NewDevice("mlx5_0", mlx5dev.SimConfig())
		must(t, err)
		m := mlx5dev.New(hw, kind.cfg)
		var r recorder
		ctx, err := mlx5.NewObserved(r.record(m.System()), m.Node(), m).With(mlx5.Settings{Inside: true}).Open()
		must(t, err)
		pd, err := ctx.AllocPD()
		must(t, err)
		cqs, err := ctx.CreateCQ(verbs.CQConfig{Entries: 8})
		must(t, err)
		opened := slices.Clone(r.calls)
		for _, g := range goldenCalls(t) {
			if g.Ctx != kind.ctx {
				continue
			}
			r.calls = slices.Clone(opened)
			switch g.Op {
			case "create_cq":
				q, err := ctx.CreateCQ(verbs.CQConfig{Entries: g.Args.CQE, Vector: g.Args.Vector})
				must(t, err)
				must(t, q.Close())
			case "create_qp":
				if g.Args.Type != "RC" {
					continue
				}
				a := &g.Args
				q, err := pd.CreateQP(verbs.QPConfig{SendCQ: cqs, RecvCQ: cqs, SigAll: a.SigAll != 0,
					Caps: qp.Caps{SendWR: a.SendWR, RecvWR: a.RecvWR, SendSGE: a.SendSGE, RecvSGE: a.RecvSGE, Inline: a.Inline}})
				must(t, err)
				must(t, q.Close())
			case "alloc_pd":
			case "open_device":
				if g.Object == 0 && g.Method == 0 { // limits that the driver tells only its library
					continue
				}
			default:
				continue
			}
			i := slices.IndexFunc(r.calls, func(c uverbs.Call) bool {
				return c.Object == g.Object && c.Method == g.Method && g.drives(&c)
			})
			if g.Op == "create_cq" || g.Op == "create_qp" { // the newest
				for k := range r.calls {
					if r.calls[k].Object == g.Object && r.calls[k].Method == g.Method {
						i = k
					}
				}
			}
			if i < 0 { // the library's own questions: DEVX, port, driver
				continue
			}
			compared[kind.ctx+" "+g.Op]++
			g.compare(t, &r.calls[i])
		}
		must(t, cqs.Close())
		must(t, pd.Close())
		must(t, ctx.Close())
		must(t, f.Close())
	}
	t.Logf("compared: %v", compared)
	for _, want := range []string{"open_device", "alloc_pd", "create_cq", "create_qp"} {
		if compared["ioctl_dynamic_uar "+want] == 0 || compared["ioctl_static_bfreg "+want] == 0 {
			t.Errorf("%s: no recorded call was compared", want)
		}
	}
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
	if uint32(got.DriverID) != g.DriverID {
		t.Errorf("%s: driver %d, want %d", g.ID, got.DriverID, g.DriverID)
	}
	for _, a := range got.Attrs {
		if a.Name != "COMP_CHANNEL" && !slices.ContainsFunc(g.Attrs, func(w goldenAttr) bool { return w.ID == a.ID }) {
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
