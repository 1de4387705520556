//go:build linux

package uverbs

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// goldenAttr is an attribute of a goldenCall.
type goldenAttr struct {
	ID       uint16
	Name     string
	Len      int
	Flags    uint16
	Kind     string
	Data     string
	Value    uint64
	Volatile [][2]int
}

// goldenCall is a request as libibverbs makes it for the same verb, on an rxe or mlx5
// device.
type goldenCall struct {
	ID       string
	Kind     string
	Ctx      string
	Op       string
	Object   uint16 `json:"object_id"`
	Method   uint16 `json:"method_id"`
	DriverID uint32 `json:"driver_id"`
	Command  uint32
	Raw      string   // of a write
	Volatile [][2]int `json:"raw_volatile"`
	Attrs    []goldenAttr
	Args     struct {
		Addr      string
		Length    uint64
		Offset    uint64
		IOVA      string
		FD        int
		Access    mr.Access
		CQE       int
		Channel   bool
		Vector    int      `json:"comp_vector"`
		CQHandle  CQHandle `json:"cq_handle"`
		Solicited int      `json:"solicited_only"`
		Type      string
		SigAll    int `json:"sq_sig_all"`
		SendWR    int `json:"max_send_wr"`
		RecvWR    int `json:"max_recv_wr"`
		SendSGE   int `json:"max_send_sge"`
		RecvSGE   int `json:"max_recv_sge"`
		Inline    int `json:"max_inline_data"`
		PD        PDHandle
		SendCQ    CQHandle    `json:"send_cq"`
		RecvCQ    CQHandle    `json:"recv_cq"`
		QPHandle  QPHandle    `json:"qp_handle"`
		MRHandle  MRHandle    `json:"mr_handle"`
		PDHandle  PDHandle    `json:"pd_handle"`
		Mask      qp.AttrMask `json:"attr_mask"`
		State     qp.State    `json:"qp_state"`
		PKeyIndex uint16      `json:"pkey_index"`
		Port      uint8       `json:"port_num"`
		QPAccess  mr.Access   `json:"qp_access_flags"`
		MTU       qp.MTU      `json:"path_mtu"`
		DestNum   qp.Num      `json:"dest_qp_num"`
		RecvPSN   qp.PSN      `json:"rq_psn"`
		DestReads uint8       `json:"max_dest_rd_atomic"`
		RNRTimer  qp.RNRTimer `json:"min_rnr_timer"`
		Timeout   qp.AckTimeout
		RetryCnt  uint8  `json:"retry_cnt"`
		RNRRetry  uint8  `json:"rnr_retry"`
		SendPSN   qp.PSN `json:"sq_psn"`
		Reads     uint8  `json:"max_rd_atomic"`
		AH        struct {
			LID       uint16 `json:"dlid"`
			PathBits  uint8  `json:"src_path_bits"`
			Rate      uint8  `json:"static_rate"`
			IsGlobal  uint8  `json:"is_global"`
			Port      uint8  `json:"port_num"`
			SL        uint8
			HopLimit  uint8  `json:"hop_limit"`
			SGIDIndex uint8  `json:"sgid_index"`
			Class     uint8  `json:"traffic_class"`
			Flow      uint32 `json:"flow_label"`
			DGID      string
		}
	}
}

// goldenCalls gives the recorded lines of a kind, and those of the directories that
// MLX5_VECTORS and RXE_VECTORS name. A line of a kind that is not known is an error.
func goldenCalls(t *testing.T, kind string) (calls []goldenCall) {
	t.Helper()
	files := []string{"testdata/rxe-uverbs.jsonl.gz", "testdata/mlx5-uverbs.jsonl.gz"}
	for _, env := range []string{"MLX5_VECTORS", "RXE_VECTORS"} {
		if dir := os.Getenv(env); dir != "" {
			more, err := filepath.Glob(filepath.Join(dir, "uverbs.jsonl*"))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, more...)
		}
	}
	for _, f := range files {
		for _, g := range readCalls(t, f) {
			switch g.Kind {
			case kind:
				calls = append(calls, g)
			case "ioctl", "write", "mmap":
			default:
				t.Errorf("%s: kind %q is not known", g.ID, g.Kind)
			}
		}
	}
	return calls
}

func readCalls(t *testing.T, path string) (calls []goldenCall) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var g goldenCall
		if err := json.Unmarshal(s.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, g)
	}
	if s.Err() != nil || len(calls) == 0 {
		t.Fatalf("%s: %d lines, %v", path, len(calls), s.Err())
	}
	return calls
}

// attr is the recorded attribute of a name; the zero value if there is none.
func (g *goldenCall) attr(name string) goldenAttr {
	if i := slices.IndexFunc(g.Attrs, func(a goldenAttr) bool { return a.Name == name }); i >= 0 {
		return g.Attrs[i]
	}
	return goldenAttr{}
}

// uhw is the driver's part of the call, as recorded.
func (g *goldenCall) uhw() *UHW {
	in, out := g.attr("UHW_IN"), g.attr("UHW_OUT")
	if in.Name == "" && out.Name == "" {
		return nil
	}
	u := &UHW{Out: make([]byte, out.Len)}
	u.In, _ = hex.DecodeString(in.Data)
	return u
}

// run makes the verb of a recorded call; false when there is no such verb here.
func (g *goldenCall) run(t *testing.T, c *Context) (done bool, err error) {
	a := &g.Args
	if g.Object == objMLX5UAR {
		if g.Method == methMLX5UARAlloc {
			_, err = c.AllocMLX5UAR(g.attr("TYPE").Data == "0000000000000000")
		}
		return g.Method == methMLX5UARAlloc, err
	}
	switch g.Op {
	case "alloc_pd":
		_, err = c.AllocPD(g.uhw())
	case "reg_mr", "reg_mr_relaxed_ordering":
		addr, _ := strconv.ParseUint(a.Addr, 0, 64)
		in, _ := hex.DecodeString(g.attr("CORE_IN").Data)
		_, _, _, err = c.RegMR(PDHandle(regMRPDHandle.Get(in)), addr, a.Length, a.Access, nil)
	case "reg_dmabuf_mr":
		iova, _ := strconv.ParseUint(a.IOVA, 0, 64)
		_, _, _, err = c.RegDMABufMR(PDHandle(g.attr("PD_HANDLE").Value), a.FD, a.Offset, a.Length, iova, a.Access)
	case "create_comp_channel":
		var ch *CompChannel
		if ch, err = c.CreateCompChannel(); err == nil {
			ch.Close()
		}
	case "create_cq":
		in, _ := hex.DecodeString(g.attr("CQE").Data) // a driver's library may ask for more than was asked of it
		cfg := &CQConfig{Entries: int(u32(in)), Vector: a.Vector}
		if a.Channel && g.DriverID == uint32(DriverMLX5) {
			if cfg.Channel, err = c.CreateCompChannel(); err != nil {
				return true, err
			}
			defer cfg.Channel.Close()
		}
		_, _, err = c.CreateCQ(cfg, g.uhw())
	case "req_notify_cq":
		var n *Notifier
		if n, err = c.NewNotifier(a.CQHandle); err == nil {
			err = n.Arm(a.Solicited != 0)
			n.Close()
		}
	case "create_qp":
		if a.Type != "RC" {
			return false, nil
		}
		caps, _ := hex.DecodeString(g.attr("CAP").Data)
		inline := int(qpCapMaxInlineData.Get(caps)) // likewise
		_, _, _, err = c.CreateQP(&QPConfig{PD: a.PD, SendCQ: a.SendCQ, RecvCQ: a.RecvCQ, SigAll: a.SigAll != 0,
			Caps: qp.Caps{SendWR: a.SendWR, RecvWR: a.RecvWR, SendSGE: a.SendSGE, RecvSGE: a.RecvSGE, Inline: inline}}, g.uhw())
	case "modify_qp_init", "modify_qp_rtr", "modify_qp_rts", "modify_qp_err":
		attr := &qp.Attr{State: a.State, PKeyIndex: a.PKeyIndex, Port: a.Port, Access: a.QPAccess, PathMTU: a.MTU, DestNum: a.DestNum,
			RecvPSN: a.RecvPSN, MaxDestReads: a.DestReads, RNRTimer: a.RNRTimer, AckTimeout: a.Timeout, RetryCount: a.RetryCnt,
			RNRRetry: a.RNRRetry, SendPSN: a.SendPSN, MaxReads: a.Reads,
			AV: qp.AV{Global: a.AH.IsGlobal != 0, Port: a.AH.Port, SL: a.AH.SL, HopLimit: a.AH.HopLimit, SGIDIndex: a.AH.SGIDIndex,
				LID: a.AH.LID, SrcPathBits: a.AH.PathBits, StaticRate: a.AH.Rate,
				TrafficClass: a.AH.Class, FlowLabel: a.AH.Flow}}
		dgid, _ := hex.DecodeString(a.AH.DGID)
		copy(attr.AV.DGID[:], dgid)
		err = c.ModifyQP(a.QPHandle, attr, a.Mask)
	case "destroy_qp":
		_, err = c.DestroyQP(a.QPHandle)
	case "destroy_cq":
		_, err = c.DestroyCQ(a.CQHandle)
	case "dereg_mr":
		err = c.DeregMR(a.MRHandle)
	case "dealloc_pd":
		err = c.DeallocPD(a.PDHandle)
	default:
		return false, nil
	}
	return true, err
}

// leftOut says why a recorded line of a verb is not compared.
var leftOut = map[string]string{
	"open_device": "libibverbs' probes, which we do not need, and the driver's own part, which package provider/mlx5 compares",
	"create_qp":   "of a transport that is not here",
	"reg_mr_iova": "regions have the address here that the process has",
}

// Our requests have the attributes, sizes, flags and payload bytes of libibverbs'.
// What is not compared is in leftOut.
func TestGoldenRequests(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the vectors are of a little-endian host")
	}
	compared, left := map[string]int{}, map[string]int{}
	for _, g := range goldenCalls(t, "ioctl") {
		k := newFake(t)
		c := k.open()
		var got *Call
		if g.Op == "open_device" {
			if g.Method != methGetContext || g.Ctx != "ioctl" {
				left[g.Op]++
				continue
			}
			got = &k.calls[0]
		} else {
			done, err := g.run(t, c)
			if err != nil {
				t.Errorf("%s: %v", g.ID, err)
				continue
			}
			if !done {
				left[g.Op]++
				continue
			}
			got = k.last()
		}
		compared[g.Op]++
		g.compare(t, got)
	}
	t.Logf("compared: %v; left out: %v", compared, left)
	for op := range left {
		if leftOut[op] == "" {
			t.Errorf("%s: there is no verb for it", op)
		}
	}
	for _, op := range []string{"open_device", "alloc_pd", "reg_mr", "reg_dmabuf_mr", "create_comp_channel", "create_cq", "req_notify_cq", "create_qp",
		"modify_qp_init", "modify_qp_rtr", "modify_qp_rts", "modify_qp_err", "reg_mr_relaxed_ordering", "destroy_qp", "destroy_cq", "dereg_mr", "dealloc_pd"} {
		if compared[op] == 0 {
			t.Errorf("%s: no recorded call was compared", op)
		}
	}
}

func (g *goldenCall) compare(t *testing.T, got *Call) {
	t.Helper()
	if got.Object != g.Object || got.Method != g.Method || uint32(got.DriverID) != g.DriverID && g.DriverID != uint32(DriverMLX5) || len(got.Attrs) != len(g.Attrs) {
		t.Errorf("%s: object %d method %d driver %d with %d attributes, want %d %d %d %d", g.ID,
			got.Object, got.Method, got.DriverID, len(got.Attrs), g.Object, g.Method, g.DriverID, len(g.Attrs))
	}
	for _, w := range g.Attrs {
		i := slices.IndexFunc(got.Attrs, func(a CallAttr) bool { return a.ID == w.ID })
		if i < 0 {
			t.Errorf("%s: %s is missing", g.ID, w.Name)
			continue
		}
		a := got.Attrs[i]
		if a.Name != w.Name || a.Flags != w.Flags || len(a.Bytes) != w.Len {
			t.Errorf("%s: %s: name %s, flags %d, %d bytes; want flags %d, %d bytes", g.ID, w.Name, a.Name, a.Flags, len(a.Bytes), w.Flags, w.Len)
			continue
		}
		switch w.Kind {
		case "in_inline", "in_ptr":
			want, err := hex.DecodeString(w.Data)
			if err != nil {
				t.Fatal(err)
			}
			have := bytes.Clone(a.Bytes)
			for _, v := range w.Volatile { // addresses and user handles
				clear(want[v[0] : v[0]+v[1]])
				clear(have[v[0] : v[0]+v[1]])
			}
			if !bytes.Equal(have, want) {
				t.Errorf("%s: %s:\ngot  %x\nwant %x", g.ID, w.Name, have, want)
			}
		case "idr_in":
			if v := binary.NativeEndian.Uint64(a.Value); v != w.Value {
				t.Errorf("%s: %s is handle %d, want %d", g.ID, w.Name, v, w.Value)
			}
		case "out_ptr", "idr_out", "fd_in", "fd_out":
		default:
			t.Error(fmt.Errorf("%s: unknown kind %q", g.ID, w.Kind))
		}
	}
}
