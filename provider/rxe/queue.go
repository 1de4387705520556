package rxe

import (
	"fmt"

	"github.com/byteexpress/byteexpress/mmio"
)

// queueShape is what a mapped queue's header says. It is read once: the memory is
// shared with the kernel.
type queueShape struct {
	log2 uint      // log2 of the size of an element in bytes
	mask mmio.Mask // slots less one
}

// parseQueue reads the header of a queue whose elements must hold minElem bytes,
// and checks that all elements lie in the mapping.
func parseQueue(b []byte, minElem int) (queueShape, error) {
	if len(b) < queueSize {
		return queueShape{}, fmt.Errorf("queue of %d bytes is shorter than its header", len(b))
	}
	s := queueShape{log2: uint(queueLog2ElemSize.Get(b)), mask: mmio.Mask(queueIndexMask.Get(b))}
	if s.log2 > 20 || 1<<s.log2 < minElem {
		return queueShape{}, fmt.Errorf("queue elements of 2^%d bytes, at least %d needed", s.log2, minElem)
	}
	if !s.mask.Valid() || uint64(s.mask)+1 > uint64(len(b)-queueSize)>>s.log2 {
		return queueShape{}, fmt.Errorf("queue of index mask %#x with elements of 2^%d bytes in %d bytes", uint32(s.mask), s.log2, len(b))
	}
	return s, nil
}

// queue is a mapped queue. One side of it, producer or consumer, is ours.
type queue struct {
	queueShape
	m        *mmio.Mapping
	elems    []byte
	producer *uint32 // shared with the kernel
	consumer *uint32
}

// newQueue takes the mapping over; on an error it is closed.
func newQueue(m *mmio.Mapping, minElem int) (*queue, error) {
	s, err := parseQueue(m.Bytes(), minElem)
	if err != nil {
		m.Close()
		return nil, err
	}
	size := (int(s.mask) + 1) << s.log2
	return &queue{
		queueShape: s, m: m, elems: m.Bytes()[queueSize:][:size:size],
		producer: m.Uint32(int(queueProducerIndex)), consumer: m.Uint32(int(queueConsumerIndex)),
	}, nil
}

// elem is the element at a position, of its full size.
func (q *queue) elem(i mmio.Index) []byte {
	off := int(i) << q.log2
	return q.elems[off : off+1<<q.log2 : off+1<<q.log2]
}

func (q *queue) loadProducer() mmio.Index { return q.mask.Wrap(mmio.LoadUint32(q.producer)) }
func (q *queue) loadConsumer() mmio.Index { return q.mask.Wrap(mmio.LoadUint32(q.consumer)) }

func (q *queue) close() error {
	if q == nil {
		return nil
	}
	return q.m.Close()
}
