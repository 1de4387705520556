package rxe

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// header makes the bytes of a queue: a header that says so, and room for elements.
func header(log2, mask uint32, room int) []byte {
	b := make([]byte, queueSize+room)
	queueLog2ElemSize.Put(b, log2)
	queueIndexMask.Put(b, mask)
	return b
}

func TestParseQueue(t *testing.T) {
	for _, tt := range []struct {
		desc string
		b    []byte
		ok   bool
	}{
		{"good", header(6, 7, 8<<6), true},
		{"with padding", header(6, 7, 4096), true},
		{"no slots", header(6, 0, 4096), false},
		{"mask with holes", header(6, 5, 4096), false},
		{"element too small", header(5, 7, 4096), false},
		{"element far too large", header(40, 7, 4096), false},
		{"one byte short", header(6, 7, 8<<6-1), false},
		{"largest mask", header(6, 1<<32-1, 4096), false},
		{"empty", nil, false},
		{"half a header", header(6, 7, 4096)[:200], false},
	} {
		if _, err := parseQueue(tt.b, minCQElem); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.desc, err)
		}
	}
}

// Whatever the header says: every element that the shape allows lies in the bytes.
func FuzzQueue(f *testing.F) {
	f.Add(header(6, 7, 8<<6), uint32(9), uint32(3))
	f.Add(header(20, 1<<32-1, 64), uint32(1<<31), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, producer, consumer uint32) {
		s, err := parseQueue(b, minCQElem)
		if err != nil {
			return
		}
		q := queue{queueShape: s, elems: b[queueSize:]}
		p, c := s.mask.Wrap(producer), s.mask.Wrap(consumer)
		var got cq.Completion
		for n := 0; c != p; n++ {
			if n > s.mask.Capacity() {
				t.Fatal("runs for ever")
			}
			readCompletion(q.elem(c), &got)
			c = s.mask.Next(c)
		}
	})
}

func FuzzSend(f *testing.F) {
	e := make([]byte, 512)
	putSend(e, &qp.SendWR{ID: 1, Opcode: qp.CompareSwap, CompareAdd: 2, Swap: 3, RemoteAddr: 8, RKey: 4, SGEs: []qp.SGE{{Addr: 5, Length: 8, LKey: 6}}}, true)
	f.Add(e)
	e = make([]byte, 512)
	putSend(e, &qp.SendWR{Opcode: qp.SendWithImm, Flags: qp.Inline, Imm: 7, Inline: []byte("payload")}, false)
	f.Add(e)
	f.Fuzz(func(t *testing.T, e []byte) {
		w, ok := readSend(e)
		if !ok || w.Check(&qp.Caps{SendSGE: 1 << 20, Inline: 1 << 20}) != nil {
			return
		}
		again := bytes.Repeat([]byte{0xee}, len(e))
		putSend(again, &w, false)
		if w2, ok := readSend(again); !ok || !reflect.DeepEqual(w, w2) {
			t.Fatalf("%+v became %+v, %v", w, w2, ok)
		}
	})
}

func FuzzRecv(f *testing.F) {
	e := make([]byte, 128)
	putRecv(e, &qp.RecvWR{ID: 1, SGEs: []qp.SGE{{Addr: 5, Length: 8, LKey: 6}, {Length: 1}}})
	f.Add(e)
	f.Fuzz(func(t *testing.T, e []byte) {
		w, ok := readRecv(e)
		if !ok {
			return
		}
		again := make([]byte, len(e))
		putRecv(again, &w)
		if w2, ok := readRecv(again); !ok || !reflect.DeepEqual(w, w2) {
			t.Fatalf("%+v became %+v, %v", w, w2, ok)
		}
	})
}

func TestTruncatedElements(t *testing.T) {
	e := make([]byte, minSendElem+2*sgeSize)
	putSend(e, &qp.SendWR{Opcode: qp.Write, SGEs: make([]qp.SGE, 2)}, false)
	for n := range e {
		if _, ok := readSend(e[:n]); ok {
			t.Errorf("a send element of %d bytes was read", n)
		}
	}
	e = make([]byte, minRecvElem+2*sgeSize)
	putRecv(e, &qp.RecvWR{SGEs: make([]qp.SGE, 2)})
	for n := range e {
		if _, ok := readRecv(e[:n]); ok {
			t.Errorf("a receive element of %d bytes was read", n)
		}
	}
}

func BenchmarkPutSend(b *testing.B) {
	q := ring(9, mmio.Mask(127), 0)
	for name, w := range map[string]qp.SendWR{
		"sge":    {Opcode: qp.Write, SGEs: []qp.SGE{{Addr: 1, Length: 2, LKey: mr.LKey(3)}}},
		"inline": {Opcode: qp.Send, Flags: qp.Inline, Inline: make([]byte, 64)},
	} {
		b.Run("kind="+name, func(b *testing.B) {
			b.ReportAllocs()
			i := mmio.Index(0)
			for b.Loop() {
				putSend(q.elem(i), &w, false)
				i = q.mask.Next(i)
			}
		})
	}
}

func BenchmarkReadCompletion(b *testing.B) {
	q := ring(7, mmio.Mask(127), 0)
	b.ReportAllocs()
	var c cq.Completion
	i := mmio.Index(0)
	for b.Loop() {
		readCompletion(q.elem(i), &c)
		i = q.mask.Next(i)
	}
}

// readSend is the inverse of putSend. It refuses an element that does not hold what it says.
func readSend(e []byte) (w qp.SendWR, ok bool) {
	if len(e) < minSendElem {
		return w, false
	}
	w = qp.SendWR{ID: sendWRWRID.Get(e), Opcode: qp.Opcode(sendWROpcode.Get(e)), Flags: qp.SendFlags(sendWRSendFlags.Get(e))}
	if w.Opcode.HasImm() {
		w.Imm = sendWRImmData.Get(e)
	}
	switch {
	case w.Opcode == qp.Write || w.Opcode == qp.WriteWithImm || w.Opcode == qp.Read:
		w.RemoteAddr, w.RKey = sendWRRdmaRemoteAddr.Get(e), mr.RKey(sendWRRdmaRkey.Get(e))
	case w.Opcode.IsAtomic():
		w.RemoteAddr, w.RKey, w.CompareAdd = sendWRAtomicRemoteAddr.Get(e), mr.RKey(sendWRAtomicRkey.Get(e)), sendWRCompareAdd.Get(e)
		if w.Opcode == qp.CompareSwap {
			w.Swap = sendWRSwap.Get(e)
		}
	}
	d, rest := sendWQEDma.In(e), e[minSendElem:]
	if w.Flags&qp.Inline != 0 {
		n := dmaLength.Get(d)
		if uint64(n) > uint64(len(rest)) {
			return w, false
		}
		w.Inline = rest[:n]
		return w, true
	}
	w.SGEs, ok = readSGEs(rest, dmaNumSGE.Get(d))
	return w, ok
}

func readSGEs(b []byte, n uint32) (sges []qp.SGE, ok bool) {
	if uint64(n)*sgeSize > uint64(len(b)) {
		return nil, false
	}
	for range n {
		sges = append(sges, qp.SGE{Addr: sgeAddr.Get(b), Length: sgeLength.Get(b), LKey: mr.LKey(sgeLkey.Get(b))})
		b = b[sgeSize:]
	}
	return sges, true
}

// readRecv is the inverse of putRecv.
func readRecv(e []byte) (w qp.RecvWR, ok bool) {
	if len(e) < minRecvElem {
		return w, false
	}
	w.ID = recvWQEWRID.Get(e)
	w.SGEs, ok = readSGEs(e[minRecvElem:], dmaNumSGE.Get(recvWQEDma.In(e)))
	return w, ok
}
