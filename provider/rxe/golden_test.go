package rxe

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/abi"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// The vectors are what the rxe provider of rdma-core stored for the same calls.
// Only the bytes in *_writes were stored; every other byte of the ring was left
// alone, and so must ours be.

type u64 uint64

func (u *u64) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseUint(strings.Trim(string(b), `"`), 0, 64)
	*u = u64(v)
	return err
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(b []byte) (err error) {
	*h, err = hex.DecodeString(string(b))
	return err
}

type goldenSGE struct {
	Addr   u64
	Length uint32
	LKey   mr.LKey
	Data   *hexBytes
}

type goldenLine struct {
	ID    string
	Class string
	QP    struct {
		Log2      uint      `json:"log2_elem_size"`
		Mask      mmio.Mask `json:"index_mask"`
		MaxSGE    int       `json:"max_sge"`
		MaxInline int       `json:"max_inline"`
	}
	CQ struct {
		Log2 uint      `json:"log2_elem_size"`
		Mask mmio.Mask `json:"index_mask"`
	}
	Note      string
	Pre, Post struct{ Producer, Consumer mmio.Index }
	WR        []struct {
		ID         u64          `json:"wr_id"`
		Opcode     string       `json:"opcode"`
		OpcodeNum  qp.Opcode    `json:"opcode_num"`
		Flags      qp.SendFlags `json:"send_flags"`
		Imm        hexBytes
		RemoteAddr u64 `json:"remote_addr"`
		RKey       mr.RKey
		Invalidate mr.RKey `json:"invalidate_rkey"`
		CompareAdd u64     `json:"compare_add"`
		Swap       u64
		SGE        []goldenSGE
	}
	Ret    int
	BadWR  int `json:"bad_wr"`
	Writes []struct {
		Off int
		Hex hexBytes
	} `json:"data_writes"`
	Elems []struct {
		Slot mmio.Index
		Hex  hexBytes
	}
	PollNE int `json:"poll_ne"`
	WC     []struct {
		ID        u64 `json:"wr_id"`
		Status    cq.Status
		Opcode    cq.Opcode
		VendorErr uint32   `json:"vendor_err"`
		ByteLen   uint32   `json:"byte_len"`
		ImmMem    hexBytes `json:"imm_mem"`
		QPNum     cq.QPNum `json:"qp_num"`
		Flags     cq.Flags `json:"wc_flags"`
	}
}

// golden gives the lines of a file of testdata, and of those of the same name in the
// directory that RXE_VECTORS names, for lines that are not kept here.
func golden(t *testing.T, name string) (lines []goldenLine) {
	t.Helper()
	if abi.U32(0).Get([]byte{1, 0, 0, 0}) != 1 {
		t.Skip("the vectors are of a little-endian host")
	}
	lines = readLines(t, "testdata/"+name)
	if dir := os.Getenv("RXE_VECTORS"); dir != "" {
		lines = append(lines, readLines(t, filepath.Join(dir, name))...)
	}
	return lines
}

func readLines(t *testing.T, path string) (lines []goldenLine) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(z)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var l goldenLine
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if s.Err() != nil || len(lines) == 0 {
		t.Fatalf("%d lines, %v", len(lines), s.Err())
	}
	return lines
}

// sendWR makes our request of a line's; ok is false for operations that package qp
// does not have.
func (l *goldenLine) sendWR(i int) (w qp.SendWR, ok bool) {
	g := &l.WR[i]
	w = qp.SendWR{ID: uint64(g.ID), Opcode: g.OpcodeNum, Flags: g.Flags, RemoteAddr: uint64(g.RemoteAddr), RKey: g.RKey,
		CompareAdd: uint64(g.CompareAdd), Swap: uint64(g.Swap)}
	switch {
	case w.Opcode > qp.SendWithInv:
		return w, false
	case w.Opcode > qp.FetchAdd:
		w.RKey = g.Invalidate
	}
	if len(g.Imm) == 4 {
		w.Imm = abi.BE32(0).Get(g.Imm)
	}
	for _, s := range g.SGE {
		if s.Data != nil {
			w.Inline = append(w.Inline, *s.Data...)
		} else {
			w.SGEs = append(w.SGEs, qp.SGE{Addr: uint64(s.Addr), Length: s.Length, LKey: s.LKey})
		}
	}
	return w, true
}

// ring is a queue in ordinary memory, filled with a byte that shows what was not
// written.
func ring(log2 uint, mask mmio.Mask, fill byte) *queue {
	return &queue{queueShape: queueShape{log2: log2, mask: mask}, elems: bytes.Repeat([]byte{fill}, mask.Slots()<<log2)}
}

// expected is the ring after the line's writes.
func (l *goldenLine) expected(q *queue, fill byte) []byte {
	want := bytes.Repeat([]byte{fill}, len(q.elems))
	for _, w := range l.Writes {
		copy(want[w.Off:], w.Hex)
	}
	return want
}

func TestGoldenSend(t *testing.T) {
	const fill = 0xee
	compared := map[string]int{}
	for _, l := range golden(t, "send.jsonl.gz") {
		q := ring(l.QP.Log2, l.QP.Mask, fill)
		caps := qp.Caps{SendWR: q.mask.Capacity(), SendSGE: l.QP.MaxSGE, Inline: l.QP.MaxInline, Windows: true}
		if room := sendRoom(q.log2); caps.SendSGE*sgeSize > room || caps.Inline > room {
			t.Errorf("%s: element of 2^%d bytes has no room for %+v", l.ID, q.log2, caps)
		}
		producer, n, known := l.Pre.Producer, 0, true
		want := l.expected(q, fill)
		var err error
		for i := range l.WR {
			w, ok := l.sendWR(i)
			if known = known && ok; !known {
				break
			}
			// Inline payload is one piece with us.
			if len(l.WR[i].SGE) > caps.SendSGE {
				err = qp.ErrTooManySGEs
				break
			}
			// Lengths in the vectors are random; the sum may pass what a message may be.
			if err = w.Check(&caps); err != nil && err != qp.ErrMessageTooLong {
				break
			}
			err = nil
			if q.mask.Full(producer, l.Pre.Consumer) {
				err = qp.ErrQueueFull
				// rdma-core had already filled the element, unpublished; ours is not touched.
				off := int(producer) << q.log2
				copy(want[off:off+1<<q.log2], q.elem(producer))
				break
			}
			e := q.elem(producer)
			putSend(e, &w, false)
			// For inline payload rdma-core notes the number of
			// pieces, which the kernel does not use.
			if d := sendWQEDma.In(e); w.Flags&qp.Inline != 0 && len(l.WR[i].SGE) != 1 {
				wantDMA := want[int(producer)<<q.log2+int(sendWQEDma):]
				if got := dmaNumSGE.Get(wantDMA); got != uint32(len(l.WR[i].SGE)) {
					t.Errorf("%s: %d pieces noted, want %d", l.ID, got, len(l.WR[i].SGE))
				}
				dmaNumSGE.Put(wantDMA, dmaNumSGE.Get(d))
			}
			producer = q.mask.Next(producer)
			n++
		}
		if !known {
			compared["skipped: another operation"]++
			continue
		}
		compared[l.Class]++
		if failed := l.BadWR >= 0; failed != (err != nil) || failed && n != l.BadWR {
			t.Errorf("%s: %d requests taken, error %v; want %d refused with %d (%s)", l.ID, n, err, l.BadWR, l.Ret, l.Note)
			continue
		}
		if producer != l.Post.Producer {
			t.Errorf("%s: producer %d, want %d", l.ID, producer, l.Post.Producer)
		}
		diff(t, l.ID, q.elems, want)
	}
	t.Logf("compared: %v", compared)
	for _, class := range []string{"single", "inline", "inline_boundary", "chain", "error"} {
		if compared[class] == 0 {
			t.Errorf("no line of class %q was compared", class)
		}
	}
}

func TestGoldenRecv(t *testing.T) {
	const fill = 0x11
	compared := 0
	for _, l := range golden(t, "recv.jsonl.gz") {
		if l.Note == "QP in RESET" {
			continue // TestRecvInReset
		}
		q := ring(l.QP.Log2, l.QP.Mask, fill)
		caps := qp.Caps{RecvSGE: l.QP.MaxSGE}
		producer, n := l.Pre.Producer, 0
		var err error
		for i := range l.WR {
			w := qp.RecvWR{ID: uint64(l.WR[i].ID)}
			for _, s := range l.WR[i].SGE {
				w.SGEs = append(w.SGEs, qp.SGE{Addr: uint64(s.Addr), Length: s.Length, LKey: s.LKey})
			}
			// Lengths in the vectors are random; the sum may pass what a message may be.
			if err = w.Check(&caps); err != nil && err != qp.ErrMessageTooLong {
				break
			}
			err = nil
			if q.mask.Full(producer, l.Pre.Consumer) {
				err = qp.ErrQueueFull
				break
			}
			putRecv(q.elem(producer), &w)
			producer = q.mask.Next(producer)
			n++
		}
		if failed := l.BadWR >= 0; failed != (err != nil) || failed && n != l.BadWR {
			t.Errorf("%s: %d receives taken, error %v; want %d refused with %d (%s)", l.ID, n, err, l.BadWR, l.Ret, l.Note)
			continue
		}
		if producer != l.Post.Producer {
			t.Errorf("%s: producer %d, want %d", l.ID, producer, l.Post.Producer)
		}
		diff(t, l.ID, q.elems, l.expected(q, fill))
		compared++
	}
	t.Logf("%d lines compared", compared)
}

func TestGoldenCQ(t *testing.T) {
	for _, l := range golden(t, "cq.jsonl.gz") {
		q := ring(l.CQ.Log2, l.CQ.Mask, 0)
		for _, e := range l.Elems {
			copy(q.elem(e.Slot), e.Hex)
		}
		consumer, n := l.Pre.Consumer, 0
		for ; n < l.PollNE && consumer != l.Pre.Producer; n++ {
			var got cq.Completion
			readCompletion(q.elem(consumer), &got)
			w := l.WC[n]
			want := cq.Completion{ID: uint64(w.ID), Status: w.Status, VendorErr: w.VendorErr, ByteLen: w.ByteLen, QPNum: w.QPNum, Opcode: w.Opcode, Flags: w.Flags}
			switch {
			case w.Flags&cq.HasImm != 0:
				want.Imm = abi.BE32(0).Get(w.ImmMem)
			case w.Flags&cq.HasInvalidate != 0:
				want.Imm = abi.U32(0).Get(w.ImmMem)
			}
			if got != want {
				t.Errorf("%s: completion %d is\n%+v, want\n%+v", l.ID, n, got, want)
			}
			consumer = q.mask.Next(consumer)
		}
		if n != l.Ret || consumer != l.Post.Consumer {
			t.Errorf("%s: %d completions, consumer %d; want %d, %d", l.ID, n, consumer, l.Ret, l.Post.Consumer)
		}
	}
}

// diff reports the first byte in which two rings differ.
func diff(t *testing.T, id string, got, want []byte) {
	t.Helper()
	for i := range got {
		if got[i] != want[i] {
			from := i &^ 15
			t.Errorf("%s: at byte %d\ngot  %s\nwant %s", id, i, fmt.Sprintf("% x", got[from:][:16]), fmt.Sprintf("% x", want[from:][:16]))
			return
		}
	}
}
