package mlx5

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/qp"
)

// benchQueue is a send queue and a completion queue on plain memory, with a
// register that is memory too: what a post and a poll cost the processor.
type benchQueue struct {
	s    *sendQueue
	c    *cqRing
	find func(uint32) *ends
}

func newBenchQueue(tb testing.TB) *benchQueue {
	const blocks, slots = 1024, 1024
	e := &ends{num: 0x123, id: 5, sq: newBook(mapped(tb, bookBytes(blocks), 0), 0, blocks), rq: newBook(mapped(tb, bookBytes(blocks), 0), 0, blocks)}
	rec := mapped(tb, 4096, 0)
	ring := newCQRing(mapped(tb, slots*cqeSize, 0).Bytes(), cqeSize, true, rec.Uint32(64))
	c := &ring
	reg := &register{page: &uarPage{m: mapped(tb, 4096, 0)}, off: 0x800, size: 256}
	s := &sendQueue{
		sendRing: sendRing{b: mapped(tb, blocks*blockSize, 0).Bytes(), mask: blocks - 1, qpn: 0x123}, book: &e.sq, reg: reg,
		record: rec.Uint32(4), caps: &qp.Caps{SendWR: 256, SendSGE: 4, Inline: 128}, max: qp.MaxMessage,
	}
	return &benchQueue{s, c, func(uint32) *ends { return e }}
}

// complete writes the NIC's entries for n requests that begin at these blocks.
func (q *benchQueue) complete(n int, first, step uint32, opcode uint32) {
	for i := range uint32(n) {
		at := q.c.next + i
		e := q.c.b[int(at&q.c.mask)*cqeSize:][:cqeSize]
		cqeSRQNUIDX.Put(e, 5)
		cqeSopDropQPN.Put(e, opcode<<24|0x123)
		binary.BigEndian.PutUint16(e[60:], uint16(first+i*step))
		owner := uint8(0)
		if at&(q.c.mask+1) != 0 {
			owner = 1
		}
		cqeOpOwn.Put(e, cqeReq<<4|owner)
	}
}

var benchKinds = []struct {
	name   string
	opcode uint32
	wr     qp.SendWR
}{
	{"inline64", opcodeSend, qp.SendWR{Opcode: qp.Send, Flags: qp.Signaled | qp.Inline, Inline: make([]byte, 64)}},
	{"write1sge", opcodeWrite, qp.SendWR{Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: 1 << 32, RKey: 7, SGEs: []qp.SGE{{Addr: 1 << 33, Length: 4096, LKey: 9}}}},
	{"writeimm", opcodeWriteImm, qp.SendWR{Opcode: qp.WriteWithImm, Flags: qp.Signaled, Imm: 3, RemoteAddr: 1 << 32, RKey: 7, SGEs: []qp.SGE{{Addr: 1 << 33, Length: 4096, LKey: 9}}}},
}

// Posting alone: the queue is emptied by its book. ns/op is of a post call; the
// metric ns/wr of a request.
func BenchmarkPostSend(b *testing.B) {
	for _, k := range benchKinds {
		for _, n := range []int{1, 16} {
			b.Run(fmt.Sprintf("kind=%s/wrs=%d", k.name, n), func(b *testing.B) {
				q := newBenchQueue(b)
				wrs := make([]qp.SendWR, n)
				for i := range wrs {
					wrs[i] = k.wr
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := q.s.post(wrs); err != nil {
						b.Fatal(err)
					}
					mmio.StoreUint32(q.s.book.tail, q.s.head)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/wr")
			})
		}
	}
}

// Polling n entries that the NIC wrote; writing them is part of it.
func BenchmarkPoll(b *testing.B) {
	for _, k := range benchKinds {
		for _, n := range []int{1, 16} {
			b.Run(fmt.Sprintf("kind=%s/wrs=%d", k.name, n), func(b *testing.B) {
				q := newBenchQueue(b)
				dst := make([]cq.Completion, 16)
				b.ReportAllocs()
				for b.Loop() {
					q.complete(n, q.c.next, 1, k.opcode)
					if got := q.c.poll(dst, q.find); got != n {
						b.Fatal(got)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/wr")
			})
		}
	}
}

// Posting and polling do not allocate.
func TestDataPathAllocations(t *testing.T) {
	for _, k := range benchKinds {
		q := newBenchQueue(t)
		wrs := []qp.SendWR{k.wr, k.wr}
		var dst [4]cq.Completion
		if n := testing.AllocsPerRun(100, func() {
			first := q.s.blocks
			if _, err := q.s.post(wrs); err != nil {
				t.Fatal(err)
			}
			q.complete(2, first, (q.s.blocks-first)/2, k.opcode)
			if got := q.c.poll(dst[:], q.find); got != 2 {
				t.Fatal(got)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", k.name, n)
		}
	}
}
