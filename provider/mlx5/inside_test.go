package mlx5

import (
	"bytes"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// An entry with payload of a queue pair that did not ask for such, and one that
// stands for several, are errors: nothing is read or moved by them.
func TestUnaskedFormats(t *testing.T) {
	rec := mapped(t, 8, 0)
	for _, tt := range []struct {
		own    uint8
		n      int
		status cq.Status
		broken bool
	}{
		{cqeRespSend<<4 | cqeInline32, 1, cq.GeneralError, false},
		{cqeReq<<4 | cqeInline64, 1, cq.GeneralError, false},
		{cqeRespSend<<4 | formatCompressed, 0, cq.Success, true},
	} {
		e := &ends{num: 7, id: 7, sq: newBook(mapped(t, bookBytes(4), 0), 0, 4), rq: newBook(mapped(t, bookBytes(4), 0), 0, 4)}
		r := newCQRing(make([]byte, 4*cqeSize), cqeSize, false, rec.Uint32(0))
		cqeSopDropQPN.Put(r.b, opcodeRead<<24|7)
		cqeByteCount.Put(r.b, 8)
		cqeOpOwn.Put(r.b, tt.own)
		var dst [4]cq.Completion
		n := r.poll(dst[:], func(uint32) *ends { return e })
		if n != tt.n || n > 0 && dst[0].Status != tt.status || r.broken != tt.broken || int(r.next) != n {
			t.Errorf("last byte %#x: %d completions %+v, broken %v, at %d", tt.own, n, dst[0], r.broken, r.next)
		}
	}
}

// readOf is a READ into segments of these lengths, 32 bytes apart.
func readOf(area []byte, lengths ...uint32) *qp.SendWR {
	w := &qp.SendWR{Opcode: qp.Read}
	for i, n := range lengths {
		w.SGEs = append(w.SGEs, qp.SGE{Addr: mr.Addr(area[i*32:]), Length: n, LKey: 1})
	}
	return w
}

// The payload of a READ whose segments go over the end of the ring lands in them.
func TestInsideWraps(t *testing.T) {
	const blocks = 4
	area := mapped(t, 256, 0x77).Bytes()
	ring := mapped(t, blocks*blockSize, 0).Bytes()[:blocks*blockSize]
	e := &ends{num: 7, sq: newBook(mapped(t, bookBytes(blocks), 0), 0, blocks), inside: &payloads{sends: ring}}
	s := sendRing{b: ring, mask: blocks - 1, qpn: 7}
	s.put(3, readOf(area, 5, 9, 11, 3, 4))
	p := []byte("0123456789abcdefghijklmnopqrstuv")
	if st := e.unloadSend(3, p, 32); st != cq.Success {
		t.Fatal(st)
	}
	var got []byte
	for i, n := range []int{5, 9, 11, 3, 4} {
		got = append(got, area[i*32:][:n]...)
		if area[i*32+n] != 0x77 {
			t.Errorf("segment %d: bytes after it were stored", i)
		}
	}
	if !bytes.Equal(got, p) {
		t.Errorf("segments have %q", got)
	}
	if st := e.unloadSend(3, p, 33); st != cq.LocalLengthError {
		t.Errorf("more bytes than an entry has: %v", st)
	}
}
