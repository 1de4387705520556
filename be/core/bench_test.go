package core

import (
	"testing"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// nullQP completes everything at once and moves nothing.
type nullQP struct {
	fakeQP
	done []cq.Completion
}

func (q *nullQP) PostSend(wrs []qp.SendWR) (int, error) {
	for i := range wrs {
		if wrs[i].Flags&qp.Signaled != 0 {
			q.done = append(q.done, cq.Completion{ID: wrs[i].ID})
		}
	}
	return len(wrs), nil
}

func (q *nullQP) PostRecv(wrs []qp.RecvWR) (int, error) { return len(wrs), nil }

// nullSide takes messages and frees them.
type nullSide struct {
	side
	pool *poolMemory
}

func (s *nullSide) Message(k *Socket, b []byte, reserved int) {
	s.pool.Free(b)
	s.e.Taken(k, 1)
}

// poolMemory is a memory whose only cost is a stack of buffers, as with a warm
// cache.
type poolMemory struct {
	*fakeMemory
	stack map[int][][]byte
}

func (m *poolMemory) Alloc(n int) ([]byte, error) {
	if l := m.stack[n]; len(l) > 0 {
		m.stack[n] = l[:len(l)-1]
		return l[len(l)-1], nil
	}
	return m.fakeMemory.Alloc(n)
}

func (m *poolMemory) AllocWritable(n int) ([]byte, mr.RKey, error) {
	b, err := m.Alloc(n)
	return b, writeKey, err
}

func (m *poolMemory) Free(b []byte) { b = b[:cap(b)]; m.stack[len(b)] = append(m.stack[len(b)], b) }

func newNull(b testing.TB) (*Engine, *nullQP, *Socket, *poolMemory) {
	q := new(nullQP)
	e, k, mem := newNullOn(b, q, q)
	return e, q, k, mem
}

// newNullOn is newNull on a queue pair that stands on q.
func newNullOn(b testing.TB, dev qp.QP, q *nullQP) (*Engine, *Socket, *poolMemory) {
	cfg := testConfig()
	cfg.RecvDepth, cfg.PeerDepth, cfg.Backlog, cfg.PeerBacklog, cfg.EagerLimit, cfg.Fragment, cfg.Window = 64, 64, 128, 1024, 8192, 65536, 256<<10
	mem := &poolMemory{newFakeMemory(arenaBytes), map[int][][]byte{}}
	q.caps = qp.Caps{SendWR: cfg.SendDepth, RecvWR: cfg.RecvDepth, SendSGE: 6, RecvSGE: 2}
	s := &nullSide{side{t: b, quota: &fakeQuota{limit: 1 << 30}, ended: map[*Socket]error{}}, mem}
	e, err := NewEngine(cfg, dev, mem, s.quota, s)
	if err != nil {
		b.Fatal(err)
	}
	s.e = e
	if err := e.Prepare(); err != nil {
		b.Fatal(err)
	}
	e.Start(0)
	k := e.addSocket(1)
	k.state, k.answered = sockOpen, true
	return e, k, mem
}

func (q *nullQP) complete(e *Engine) {
	for i := range q.done {
		e.Complete(1, &q.done[i])
	}
	q.done = q.done[:0]
}

// BenchmarkEngineSend is the engine's own cost of a message that is sent, 16 a
// flush, on a device that costs nothing.
func BenchmarkEngineSend(b *testing.B) {
	for name, size := range map[string]int{"eager=64": 64, "fragments=65536": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			e, q, k, mem := newNull(b)
			m, _ := mem.Alloc(size)
			done := func(error) {}
			units := 1
			if size > e.cfg.EagerLimit {
				units = size / e.cfg.Fragment
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				e.Send(k, m, 1, 0, done)
				n++
				if size > e.cfg.EagerLimit {
					e.Flush(1)
					if err := e.onCTS(k, &wire.Header{Type: wire.CTS, Sequence: k.sent - 1}, wire.Grant{}); err != nil {
						b.Fatal(err)
					}
				}
				for n%16 == 0 && (k.sending > 0) || k.writing.head != nil {
					e.credits.granted = e.credits.consumed + 64
					k.peerTaken = k.sent
					e.Flush(1)
					q.complete(e)
				}
				if size > e.cfg.EagerLimit {
					q.complete(e)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*units), "ns/unit")
		})
	}
}

// BenchmarkEngineRecv is the engine's own cost of a small message that arrives,
// with its buffer handed out and replaced.
func BenchmarkEngineRecv(b *testing.B) {
	e, q, k, _ := newNull(b)
	h := wire.Header{Type: wire.Data, Granted: 64, Socket: 1}
	b.ReportAllocs()
	n := uint64(0)
	for b.Loop() {
		h.Sequence = uint32(n)
		h.Put(e.recv.header(int(e.recv.next)))
		e.Complete(1, &cq.Completion{ID: uint64(e.recv.idHigh)<<32 | uint64(uint32(n)), ByteLen: wire.HeaderLen + 64, Opcode: cq.Recv})
		n++
		if n%32 == 0 {
			e.credits.granted = e.credits.consumed + 64
			e.Flush(1)
			q.complete(e)
		}
	}
	if e.Err() != nil || k.received == 0 {
		b.Fatal(e.Err())
	}
}
