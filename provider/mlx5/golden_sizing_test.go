package mlx5

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

type goldenCap struct {
	SendWR  int `json:"max_send_wr"`
	RecvWR  int `json:"max_recv_wr"`
	SendSGE int `json:"max_send_sge"`
	RecvSGE int `json:"max_recv_sge"`
	Inline  int `json:"max_inline_data"`
	Windows bool
}

type goldenRing struct {
	Count  int  `json:"wqe_cnt"`
	Shift  uint `json:"wqe_shift"`
	Offset int
}

type goldenSizes struct {
	Type string
	Dev  struct {
		SQDesc int `json:"max_sq_desc_sz"`
		RQDesc int `json:"max_rq_desc_sz"`
		Blocks int `json:"max_send_wqebb"`
		RecvWR int `json:"max_recv_wr"`
	}
	Cap     goldenCap
	OutCap  goldenCap `json:"out_cap"`
	Errno   int
	SQ, RQ  goldenRing
	BufSize int `json:"buf_size"`
	Entries int `json:"cqe"`
	Slots   int `json:"ncqe"`
}

// Every vector of queue sizes, those of other transports too: only the reserved
// part of a request differs. max_inline_underflow: with no segment and no inline
// byte asked for, rdma-core reports -4 inline bytes; ours 0.
func TestGoldenSizing(t *testing.T) {
	overheads := map[string]int{"RC": sendOverhead, "UC": sendOverhead, "UD": 64}
	for _, l := range golden(t, "sizing") {
		if l.Class == "cq" {
			slots, err := sizeCQ(l.goldenSizes.Entries)
			if slots != l.goldenSizes.Slots || (err != nil) != (l.Errno != 0) {
				t.Errorf("%s: %d entries give %d slots, %v; want %d, errno %d", l.ID, l.goldenSizes.Entries, slots, err, l.goldenSizes.Slots, l.Errno)
			}
			continue
		}
		d := l.Dev
		s, err := sizeQP(&limits{sendDesc: d.SQDesc, recvDesc: d.RQDesc, sendBlocks: d.Blocks, recvWR: d.RecvWR}, overheads[l.Type], qp.Caps(l.Cap))
		if err != nil || l.Errno != 0 {
			if l.Errno == 0 || !errors.Is(err, verbs.ErrLimit) {
				t.Errorf("%s: error %v, want errno %d for %+v", l.ID, err, l.Errno, l.Cap)
			}
			continue
		}
		want := qp.Caps(l.OutCap)
		if l.Quirk == "max_inline_underflow" {
			want.Inline = 0
		}
		if s.caps != want || s.sendBlocks != l.SQ.Count || s.recvSlots != l.RQ.Count || s.recvSlots > 0 && s.recvShift != l.RQ.Shift ||
			s.recvBytes() != l.SQ.Offset || s.bytes() != l.BufSize {
			t.Errorf("%s: %+v, want caps %+v, SQ %+v, RQ %+v, %d bytes", l.ID, s, want, l.SQ, l.RQ, l.BufSize)
		}
	}
}
