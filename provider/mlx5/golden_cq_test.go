package mlx5

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
)

type goldenPoll struct {
	CQ struct {
		CQN       uint32
		Slots     int `json:"ncqe"`
		Version   int `json:"cqe_version"`
		EntrySize int `json:"cqe_size"`
	}
	QPs []struct {
		QPN, UIDX  uint32
		SQBlocks   int                         `json:"sq_wqe_cnt"`
		RQSlots    int                         `json:"rq_wqe_cnt"`
		SQTail     uint32                      `json:"sq_tail"`
		RQTail     uint32                      `json:"rq_tail"`
		PostSQTail uint32                      `json:"post_sq_tail"`
		PostRQTail uint32                      `json:"post_rq_tail"`
		WRData     []struct{ Idx, Val uint32 } `json:"wr_data"`
	}
	CQEs []struct {
		Slot int
		Hex  hexBytes
	}
	RecvIndex   int    `json:"scatter_rq_idx"`
	SendCounter uint32 `json:"scatter_sq_counter"`
	SendOpcode  string `json:"scatter_opcode"`
	Scatter     []struct {
		Off    int `json:"out_off"`
		Length int
	}
	Out       hexBytes `json:"scatter_out"`
	PollNE    int      `json:"poll_ne"`
	WC        []goldenWC
	Solicited int    `json:"solicited_only"`
	ArmSN     uint32 `json:"arm_sn"`
}

type goldenWC struct {
	ID          u64 `json:"wr_id"`
	Status      cq.Status
	Opcode      *cq.Opcode
	VendorErr   *uint32  `json:"vendor_err"`
	ByteLen     *uint32  `json:"byte_len"`
	Imm         hexBytes `json:"imm_mem"`
	Invalidated *uint32  `json:"invalidated_rkey"`
	QPNum       cq.QPNum `json:"qp_num"`
	Flags       cq.Flags `json:"wc_flags"`
}

// same reports whether the completion has what the vector's poll stored. Fields
// that it did not store are 0.
func (w *goldenWC) same(c *cq.Completion) bool {
	want := cq.Completion{ID: uint64(w.ID), Status: w.Status, QPNum: w.QPNum, Flags: w.Flags}
	if w.Opcode != nil {
		want.Opcode = *w.Opcode
	}
	if w.VendorErr != nil {
		want.VendorErr = *w.VendorErr
	}
	if w.ByteLen != nil {
		want.ByteLen = *w.ByteLen
	}
	if w.Imm != nil {
		want.Imm = binary.BigEndian.Uint32(w.Imm)
	}
	if w.Invalidated != nil {
		want.Imm = *w.Invalidated
	}
	return *c == want
}

// Every vector of polling, with this exception: of lines marked
// poll_error_discards, where rdma-core loses entries, ours passes over the ones of
// unknown queue pairs and reports the others.
func TestGoldenPoll(t *testing.T) {
	inside := 0
	for _, l := range golden(t, "cq") {
		if l.Class == "arm" {
			continue
		}
		known := map[uint32]*ends{}
		var qps []*ends
		for _, q := range l.QPs {
			e := &ends{num: cq.QPNum(q.QPN), id: q.QPN,
				sq: newBook(mapped(t, bookBytes(q.SQBlocks), 0), 0, q.SQBlocks), rq: newBook(mapped(t, bookBytes(q.RQSlots), 0), 0, q.RQSlots)}
			if l.CQ.Version == 1 {
				e.id = q.UIDX
			}
			e.sq.complete(q.SQTail)
			e.rq.complete(q.RQTail)
			for i := range uint32(q.SQBlocks) {
				e.sq.enter(i, 0x5100000000000000|uint64(q.QPN)<<24|uint64(i), 1000+2*i, 0)
			}
			for i := range uint32(q.RQSlots) {
				e.rq.enter(i, 0x5200000000000000|uint64(q.QPN)<<24|uint64(i), 0, 0)
			}
			for _, d := range q.WRData {
				e.sq.enter(d.Idx, e.sq.id(d.Idx), e.sq.head(d.Idx), d.Val)
			}
			known[e.id] = e
			qps = append(qps, e)
		}
		area := l.scatter(t, qps)
		recm := mapped(t, 8, 0)
		rec := recm.Bytes()[:8]
		copy(rec, l.Pre.Record)
		size := l.CQ.EntrySize
		r := newCQRing(mapped(t, l.CQ.Slots*size, 0).Bytes()[:l.CQ.Slots*size], size, l.CQ.Version == 1, recm.Uint32(4*recordConsumer))
		c := &r
		c.next = l.Pre.Cons
		for _, e := range l.CQEs {
			copy(c.b[e.Slot*size:], e.Hex)
		}
		before := slices.Clone(c.b)
		dst := make([]cq.Completion, l.PollNE)
		unknown := 0
		n := c.poll(dst, func(id uint32) *ends {
			if known[id] == nil {
				unknown++
			}
			return known[id]
		})
		if !bytes.Equal(c.b, before) {
			t.Errorf("%s: polling wrote to the ring", l.ID)
		}
		if l.Quirk == "poll_error_discards" {
			if unknown == 0 || n != min(len(l.CQEs)-unknown, l.PollNE) {
				t.Errorf("%s: %d completions of %d entries with %d of unknown queue pairs", l.ID, n, len(l.CQEs), unknown)
			}
			continue
		}
		if n != l.Ret || n != len(l.WC) {
			t.Errorf("%s: %d completions, want %d", l.ID, n, l.Ret)
			continue
		}
		for i := range l.WC {
			if !l.WC[i].same(&dst[i]) {
				t.Errorf("%s: completion %d is %+v, want %+v", l.ID, i, dst[i], l.WC[i])
			}
		}
		if c.next != l.Post.Cons || !bytes.Equal(rec, l.Post.Record) {
			t.Errorf("%s: consumer %d record % x, want %+v", l.ID, c.next, rec, l.Post)
		}
		for i, q := range l.QPs {
			if s, r := qps[i].sq.completed(), qps[i].rq.completed(); s != q.PostSQTail || r != q.PostRQTail {
				t.Errorf("%s: tails %d, %d, want %d, %d", l.ID, s, r, q.PostSQTail, q.PostRQTail)
			}
		}
		if l.Out != nil {
			inside++
			differ(t, l.ID, "area", area[:len(l.Out)], l.Out)
		}
	}
	t.Logf("%d lines with payload inside the entry", inside)
}

// scatter lays out the request whose payload is inside the line's entry, with
// segments in an area that is filled with a byte.
func (l *goldenPoll) scatter(t *testing.T, qps []*ends) []byte {
	if l.Out == nil {
		return nil
	}
	area := mapped(t, len(l.Out), 0x77).Bytes()
	var segments []byte
	for _, s := range l.Scatter {
		d := make([]byte, dataSize)
		dataByteCount.Put(d, uint32(s.Length))
		dataLKey.Put(d, 1)
		dataAddr.Put(d, mr.Addr(area[s.Off:]))
		segments = append(segments, d...)
	}
	for i, q := range qps {
		sends := make([]byte, l.QPs[i].SQBlocks*blockSize)
		recvs := make([]byte, l.QPs[i].RQSlots*4*dataSize)
		q.inside = &payloads{sends: sends, recvs: recvs, recvShift: 6}
		if l.SendOpcode == "" {
			copy(recvs[l.RecvIndex&int(q.rq.mask)<<6:], segments)
			if len(segments) < 4*dataSize {
				dataLKey.Put(recvs[l.RecvIndex&int(q.rq.mask)<<6+len(segments):], dataInvalidLKey)
			}
			continue
		}
		code, head := map[string]uint32{"RDMA_READ": opcodeRead, "ATOMIC_CMP_AND_SWP": opcodeCompareSwap, "ATOMIC_FETCH_AND_ADD": opcodeFetchAdd}[l.SendOpcode], 48
		if code == opcodeRead {
			head = 32
		}
		at := int(l.SendCounter&q.sq.mask) << blockShift
		ctrlOpmodIdxOpcode.Put(sends[at:], l.SendCounter<<8|code)
		ctrlQPNDS.Put(sends[at:], uint32(q.num)<<8|uint32((head+len(segments))/16))
		for k := range segments {
			sends[(at+head+k)%len(sends)] = segments[k]
		}
	}
	return area
}

// Every vector of arming.
func TestGoldenArm(t *testing.T) {
	lines := 0
	for _, l := range golden(t, "cq") {
		if l.Class != "arm" {
			continue
		}
		lines++
		page, recm := mapped(t, 4096, 0x55), mapped(t, 8, 0)
		rec := recm.Bytes()[:8]
		copy(rec, l.Pre.Record)
		a := &armer{page: &uarPage{m: page}, cqn: l.CQ.CQN, sn: l.ArmSN}
		a.arm(recm.Uint32(4*recordArm), l.Pre.Cons, l.Solicited != 0)
		image := slices.Repeat([]byte{0x55}, 4096)
		apply(image, l.UARWrites)
		differ(t, l.ID, "UAR", page.Bytes(), image)
		if !bytes.Equal(rec, l.Post.Record) {
			t.Errorf("%s: record % x, want % x", l.ID, rec, l.Post.Record)
		}
	}
	if lines == 0 {
		t.Error("no lines")
	}
}
