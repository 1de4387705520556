//go:build linux

package mlx5

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/qp"
)

// benchQueue is a queue pair and its completion queue as users have them, on plain
// memory, with a register that is memory too: what a post and a poll cost the
// processor. compare/mlx5 has the same for the C provider.
type benchQueue struct {
	q *queuePair
	c *completionQueue
}

// benchRequests is the capacity asked for.
const benchRequests = 256

func newBenchQueue(tb testing.TB) *benchQueue {
	const slots = 1024
	l := &limits{sendDesc: 1024, recvDesc: 512, sendBlocks: 32768, recvWR: 32768}
	s, err := sizeQP(l, sendOverhead, qp.Caps{SendWR: benchRequests, RecvWR: 1, SendSGE: 4, RecvSGE: 1, Inline: 124})
	if err != nil {
		tb.Fatal(err)
	}
	rec := mapped(tb, 4096, 0)
	q := &queuePair{QP: kdev.QP{Given: s.caps}}
	e := &q.ends
	e.num, e.id = 0x123, 5
	e.sq, e.rq = newBook(mapped(tb, bookBytes(s.sendBlocks), 0), 0, s.sendBlocks), newBook(mapped(tb, bookBytes(s.recvSlots), 0), 0, s.recvSlots)
	q.sq = sendQueue{
		sendRing: sendRing{b: mapped(tb, s.sendBlocks*blockSize, 0).Bytes(), mask: uint32(s.sendBlocks - 1), qpn: 0x123}, book: e.sq,
		reg: newRegister(&uarPage{m: mapped(tb, 4096, 0)}, 0x800, 256), record: rec.Uint32(4), caps: q.Given, max: qp.MaxMessage,
	}
	q.Moved(qp.Reset, qp.RTS)
	ctx := &devContext{Context: &kdev.Context{}}
	ctx.ends.Store(&map[uint32]*ends{5: e})
	c := &completionQueue{ctx: ctx, find: ctx.find, ring: newCQRing(mapped(tb, slots*cqeSize, 0).Bytes(), cqeSize, true, rec.Uint32(64))}
	return &benchQueue{q, c}
}

// complete writes the NIC's entries for n requests that begin at these blocks.
func (q *benchQueue) complete(n int, first, step uint32, opcode uint32) {
	r := &q.c.ring
	for i := range uint32(n) {
		at := r.next + i
		e := r.b[int(at&r.mask)*cqeSize:][:cqeSize]
		cqeSRQNUIDX.Put(e, 5)
		cqeSopDropQPN.Put(e, opcode<<24|0x123)
		binary.BigEndian.PutUint16(e[60:], uint16(first+i*step))
		owner := uint8(0)
		if at&(r.mask+1) != 0 {
			owner = 1
		}
		cqeOpOwn.Put(e, cqeReq<<4|owner)
	}
}

func (q *benchQueue) post(tb testing.TB, wrs []qp.SendWR) {
	if n, err := q.q.PostSend(wrs); n != len(wrs) || err != nil {
		tb.Fatal(n, err)
	}
}

func (q *benchQueue) poll(tb testing.TB, dst []cq.Completion, n int) {
	if got, err := q.c.Poll(dst); got != n || err != nil || dst[0].Status != cq.Success {
		tb.Fatal(got, err, dst[0])
	}
}

type benchKind struct {
	name   string
	opcode uint32
	blocks uint32 // a request
	wr     qp.SendWR
}

var benchKinds = []benchKind{
	{"inline64", opcodeSend, 2, qp.SendWR{Opcode: qp.Send, Flags: qp.Signaled | qp.Inline, Inline: make([]byte, 64)}},
	{"write1sge", opcodeWrite, 1, qp.SendWR{Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: 1 << 32, RKey: 7, SGEs: []qp.SGE{{Addr: 1 << 33, Length: 4096, LKey: 9}}}},
	{"writeimm", opcodeWriteImm, 1, qp.SendWR{Opcode: qp.WriteWithImm, Flags: qp.Signaled, Imm: 3, RemoteAddr: 1 << 32, RKey: 7, SGEs: []qp.SGE{{Addr: 1 << 33, Length: 4096, LKey: 9}}}},
}

// eachKind runs a benchmark with 1 and 16 requests of each kind. ns/op is of a call,
// ns/wr of a request.
func eachKind(b *testing.B, run func(b *testing.B, q *benchQueue, k *benchKind, wrs []qp.SendWR)) {
	for i := range benchKinds {
		k := &benchKinds[i]
		for _, n := range []int{1, 16} {
			b.Run(fmt.Sprintf("kind=%s/wrs=%d", k.name, n), func(b *testing.B) {
				wrs := make([]qp.SendWR, n)
				for i := range wrs {
					wrs[i] = k.wr
				}
				b.ReportAllocs()
				run(b, newBenchQueue(b), k, wrs)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/wr")
			})
		}
	}
}

// Posting; one completion empties the queue whenever it is full, and is part of it.
func BenchmarkPostSend(b *testing.B) {
	eachKind(b, func(b *testing.B, q *benchQueue, k *benchKind, wrs []qp.SendWR) {
		var dst [1]cq.Completion
		left := benchRequests / len(wrs)
		for b.Loop() {
			if left == 0 {
				q.complete(1, q.q.sq.blocks-k.blocks, k.blocks, k.opcode)
				q.poll(b, dst[:], 1)
				left = benchRequests / len(wrs)
			}
			q.post(b, wrs)
			left--
		}
	})
}

// Posting, and polling the entries that are written for it.
func BenchmarkPostPoll(b *testing.B) {
	eachKind(b, func(b *testing.B, q *benchQueue, k *benchKind, wrs []qp.SendWR) {
		dst := make([]cq.Completion, 16)
		for b.Loop() {
			first := q.q.sq.blocks
			q.post(b, wrs)
			q.complete(len(wrs), first, k.blocks, k.opcode)
			q.poll(b, dst, len(wrs))
		}
	})
}

// Polling entries that the NIC wrote; writing them is part of it.
func BenchmarkPoll(b *testing.B) {
	eachKind(b, func(b *testing.B, q *benchQueue, k *benchKind, wrs []qp.SendWR) {
		dst := make([]cq.Completion, 16)
		for b.Loop() {
			q.complete(len(wrs), q.c.ring.next, k.blocks, k.opcode)
			q.poll(b, dst, len(wrs))
		}
	})
}

// Posting and polling do not allocate.
func TestDataPathAllocations(t *testing.T) {
	for i := range benchKinds {
		k := &benchKinds[i]
		q := newBenchQueue(t)
		wrs := []qp.SendWR{k.wr, k.wr}
		var dst [4]cq.Completion
		if n := testing.AllocsPerRun(100, func() {
			first := q.q.sq.blocks
			q.post(t, wrs)
			q.complete(2, first, k.blocks, k.opcode)
			q.poll(t, dst[:], 2)
		}); n != 0 {
			t.Errorf("%s: %v allocations", k.name, n)
		}
	}
}
