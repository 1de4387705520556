package fabric

import (
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/nic"
)

// Bytes of a frame around the transport header and the payload.
const (
	lowerBytes = 18 + 20 + 8 + 4 // Ethernet with its checksum, IPv4, UDP, invariant checksum
	gapBytes   = 20              // preamble and inter-frame gap: on the wire, in no buffer
	cnpBytes   = 78              // a CNP: transport header and 16 reserved bytes (RoCE annex A17.9.3)
	pauseBytes = 64              // a PFC frame (IEEE 802.1Qbb)
	cellBytes  = 208             // buffers are used in cells of that size (Broadcom Trident+)
)

// class is a traffic class; lower ones go first.
type class uint8

const (
	control class = iota
	data          // RDMA: PFC pauses it
	lossy         // TCP: switches drop it
	classes
)

type frameKind uint8

const (
	packetFrame frameKind = iota
	notifyFrame           // congestion notification
	pauseFrame
	datagramFrame
)

// frame is what a link carries.
type frame struct {
	hop
	pkt nic.Packet // of other kinds only the route: the flow that a notifyFrame is about, the body of a datagram
}

// hop is what every hop looks at: a cache line.
type hop struct {
	next   *frame
	at     des.Time // when it may be sent, or arrives
	place  uint64   // of its arrival in the order of events
	to     *port    // the switch's to the host that it is for
	hash   uint64   // of the choice among ways
	in     *port    // by which it came into the switch that has it
	size   int32    // bytes in a buffer
	from   int32    // datagramFrame: the host
	kind   frameKind
	class  class
	ecn    bool // may be marked
	marked bool // congestion experienced
	off    bool // pauseFrame: stop, else go on
}

// cells is what the frame takes of a switch's buffer, in bytes.
func (fr *frame) cells() int { return (int(fr.size) + cellBytes - 1) / cellBytes * cellBytes }

// fifo is a queue of frames.
type fifo struct {
	head, tail *frame
	n, bytes   int
}

func (q *fifo) push(fr *frame) {
	fr.next = nil
	if q.tail == nil {
		q.head = fr
	} else {
		q.tail.next = fr
	}
	q.tail = fr
	q.n++
	q.bytes += int(fr.size)
}

// pop takes the first frame, nil if there is none.
func (q *fifo) pop() *frame {
	fr := q.head
	if fr == nil {
		return nil
	}
	if q.head = fr.next; q.head == nil {
		q.tail = nil
	}
	q.n--
	q.bytes -= int(fr.size)
	return fr
}

// newFrame takes a frame from the pool.
func (f *Fabric) newFrame() *frame {
	if f.free == nil {
		more := make([]frame, 64)
		for i := range more {
			more[i].next = f.free
			f.free = &more[i]
		}
	}
	fr := f.free
	f.free = fr.next
	return fr
}

// recycle gives a frame back to the pool.
func (f *Fabric) recycle(fr *frame) {
	fr.hop, fr.pkt.Route = hop{next: f.free}, nil // what sends it sets the rest
	f.free = fr
}
