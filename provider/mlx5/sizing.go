package mlx5

import (
	"fmt"
	"math/bits"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// sendOverhead is the part of a reliable connection's send request that is always
// reserved, as rdma-core does: the control segment and the longest request without
// payload, an invalidation (UMR control, key context and one KLM segment).
const sendOverhead = ctrlSize + umrCtrlSize + keySize + blockSize

// limits are what the kernel says about queues when a context is opened.
type limits struct {
	sendDesc   int // bytes a send request
	recvDesc   int // bytes a receive request
	sendBlocks int // 64-byte blocks a send queue
	recvWR     int // receives a queue
	sharedWR   int // slots of a shared receive queue
}

// sizes is the shape of a queue pair's rings and the capacities that it has.
type sizes struct {
	sendBlocks int  // in the send queue, a power of two; 0: no send queue
	recvSlots  int  // in the receive queue, a power of two; 0: no receive queue
	recvShift  uint // log2 of a receive slot's bytes
	caps       qp.Caps
}

// recvBytes is the length of the receive queue, behind which the send queue lies.
func (s *sizes) recvBytes() int { return s.recvSlots << s.recvShift }

// bytes is the length of both queues.
func (s *sizes) bytes() int { return s.recvBytes() + s.sendBlocks<<blockShift }

// sizeQP settles the rings for capacities asked for. The errors wrap
// [verbs.ErrLimit].
func sizeQP(l *limits, overhead int, want qp.Caps) (s sizes, err error) {
	s.caps = want
	if err = s.sizeSend(l, overhead, &want); err != nil {
		return s, err
	}
	return s, s.sizeRecv(l, &want)
}

func (s *sizes) sizeSend(l *limits, overhead int, want *qp.Caps) error {
	if want.SendWR == 0 {
		s.caps.Inline = 0
		return nil
	}
	need := overhead + want.SendSGE*dataSize
	if want.Inline > 0 {
		need = max(need, overhead+roundUp(inlineHeader+want.Inline, 16))
	}
	size := roundUp(need, blockSize)
	if need > l.sendDesc || size > l.sendDesc {
		return fmt.Errorf("%w: a send request of %d segments or %d inline bytes takes %d bytes, at most %d", verbs.ErrLimit, want.SendSGE, want.Inline, size, l.sendDesc)
	}
	if want.SendWR > (1<<31-1)/max(l.sendDesc, 1) { // rdma-core's bound; the rest must fit 32 bits
		return fmt.Errorf("%w: %d send requests of %d bytes", verbs.ErrLimit, want.SendWR, size)
	}
	total := powerOfTwo(want.SendWR * size)
	s.sendBlocks = total / blockSize
	if s.sendBlocks > l.sendBlocks {
		return fmt.Errorf("%w: %d send requests of %d bytes take %d blocks of 64 bytes, at most %d: ask for fewer requests, segments or inline bytes",
			verbs.ErrLimit, want.SendWR, size, s.sendBlocks, l.sendBlocks)
	}
	s.caps.SendWR, s.caps.Inline = total/size, max(size-overhead-inlineHeader, 0)
	return nil
}

func (s *sizes) sizeRecv(l *limits, want *qp.Caps) error {
	if want.RecvWR == 0 {
		s.caps.RecvSGE = 0
		return nil
	}
	if want.RecvWR > l.recvWR {
		return fmt.Errorf("%w: %d receive requests, at most %d", verbs.ErrLimit, want.RecvWR, l.recvWR)
	}
	size := powerOfTwo(max(want.RecvSGE, 1) * dataSize)
	if size > l.recvDesc {
		return fmt.Errorf("%w: a receive request of %d segments takes %d bytes, at most %d", verbs.ErrLimit, want.RecvSGE, size, l.recvDesc)
	}
	total := max(powerOfTwo(want.RecvWR)*size, blockSize)
	s.recvSlots, s.recvShift = total/size, uint(bits.TrailingZeros(uint(size)))
	s.caps.RecvWR, s.caps.RecvSGE = s.recvSlots, size/dataSize
	return nil
}

// sizeSRQ settles the slots of a shared receive queue: one more than it can have
// posted, and each with room for the next one's number. The errors wrap
// [verbs.ErrLimit].
func sizeSRQ(l *limits, want qp.SRQCaps) (slots int, shift uint, caps qp.SRQCaps, err error) {
	size := powerOfTwo(max(2*dataSize, nextSize+want.RecvSGE*dataSize))
	if size > l.recvDesc {
		return 0, 0, caps, fmt.Errorf("%w: a receive request of %d segments takes %d bytes, at most %d", verbs.ErrLimit, want.RecvSGE, size, l.recvDesc)
	}
	if want.RecvWR < 1 || want.RecvWR >= l.sharedWR {
		return 0, 0, caps, fmt.Errorf("%w: %d shared receive requests, must be 1 to %d", verbs.ErrLimit, want.RecvWR, l.sharedWR-1)
	}
	slots = powerOfTwo(want.RecvWR + 1)
	return slots, uint(bits.TrailingZeros(uint(size))), qp.SRQCaps{RecvWR: slots - 1, RecvSGE: (size - nextSize) / dataSize}, nil
}

// maxCQE is the most entries of a completion queue.
const maxCQE = 1 << 24

// sizeCQ gives the slots of a completion queue for that many entries.
func sizeCQ(entries int) (slots int, err error) {
	if entries < 1 || entries >= maxCQE {
		return 0, fmt.Errorf("%w: %d CQ entries, must be 1 to %d", verbs.ErrLimit, entries, maxCQE-1)
	}
	return powerOfTwo(entries + 1), nil
}

// powerOfTwo is the least power of two that is at least n. Preconditions: n > 0.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }

// roundUp rounds n up to a multiple of a power of two.
func roundUp(n, to int) int { return (n + to - 1) &^ (to - 1) }
