package mlx5

import (
	"encoding/binary"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
)

// ends is what completions of a queue pair need of it.
type ends struct {
	num cq.QPNum
	id  uint32 // by which completions name it
	sq  book
	rq  book
}

// numberMask are the bits of a queue pair's number or user index.
const numberMask = 0xffffff

// cqRing is a completion queue's memory, of a power of two of entries.
type cqRing struct {
	b      []byte
	mask   uint32
	next   uint32  // entries consumed ever
	uidx   bool    // entries name queue pairs by user index, else by number
	record *uint32 // word of the doorbell record: entries consumed, big-endian
	last   *ends   // of the last entry
}

// prepare makes every entry of a new ring one that the NIC has not written.
func (c *cqRing) prepare() {
	for off := int(cqeOpOwn); off < len(c.b); off += cqeSize {
		c.b[off] = cqeInvalid << 4
	}
}

// pending gives the entry at a position and its opcode, if the NIC has written it.
func (c *cqRing) pending(at uint32) (e []byte, opcode uint8, ok bool) {
	e = c.b[int(at&c.mask)*cqeSize:][:cqeSize:cqeSize]
	own := cqeOpOwn.Get(e)
	lap := at&(c.mask+1) != 0
	return e, own >> 4, own>>4 != cqeInvalid && (own&cqeOwnerMask != 0) == lap
}

// owner gives the number by which an entry names its queue pair.
func (c *cqRing) owner(e []byte) uint32 {
	if c.uidx {
		return cqeSRQNUIDX.Get(e) & numberMask
	}
	return cqeSopDropQPN.Get(e) & numberMask
}

// poll moves completions into dst. Entries of queue pairs that find does not know
// are of ones that were closed, and are passed over.
func (c *cqRing) poll(dst []cq.Completion, find func(uint32) *ends) (n int) {
	start := c.next
	for n < len(dst) {
		e, opcode, ok := c.pending(c.next)
		if !ok {
			break
		}
		mmio.ReadBarrier()
		c.next++
		id := c.owner(e)
		q := c.last
		if q == nil || q.id != id {
			if q = find(id); q == nil {
				continue
			}
			c.last = q
		}
		if q.complete(e, opcode, &dst[n]) {
			n++
		}
	}
	if c.next != start {
		mmio.WriteBarrier()
		mmio.StoreBE32(c.record, c.next&numberMask)
	}
	return n
}

// forget makes the entries not yet polled of a queue pair those of an unknown one.
// Preconditions: the NIC writes no more of them.
func (c *cqRing) forget(q *ends) {
	c.last = nil
	for at := c.next; at-c.next <= c.mask; at++ {
		e, _, ok := c.pending(at)
		if !ok {
			return
		}
		mmio.ReadBarrier()
		if c.owner(e) != q.id {
			continue
		}
		if c.uidx {
			cqeSRQNUIDX.Put(e, numberMask)
		} else {
			cqeSopDropQPN.Put(e, cqeSopDropQPN.Get(e)|numberMask)
		}
	}
}

// complete decodes an entry and retires its request. false: an entry of a kind
// that this package does not ask for.
func (q *ends) complete(e []byte, opcode uint8, c *cq.Completion) bool {
	switch opcode {
	case cqeReq:
		*c = cq.Completion{QPNum: q.num}
		slot := counter(e)
		q.sendKind(e, slot, c)
		q.retireSend(slot, c)
	case cqeRespWriteImm, cqeRespSend, cqeRespSendImm, cqeRespSendInvalidate:
		*c = cq.Completion{QPNum: q.num, ByteLen: cqeByteCount.Get(e), Opcode: cq.Recv}
		if cqeFlagsRQPN.Get(e)>>28&3 != 0 {
			c.Flags = cq.HasGRH
		}
		switch opcode {
		case cqeRespWriteImm:
			c.Opcode = cq.RecvWriteWithImm
			fallthrough
		case cqeRespSendImm:
			c.Flags |= cq.HasImm
			c.Imm = cqeImmInvalPKey.Get(e)
		case cqeRespSendInvalidate:
			c.Flags |= cq.HasInvalidate
			c.Imm = cqeImmInvalPKey.Get(e)
		}
		q.retireRecv(e, c)
	case cqeReqErr, cqeRespErr:
		*c = cq.Completion{QPNum: q.num, Status: status(cqeSyndrome.Get(e)), VendorErr: uint32(cqeVendorSyndrome.Get(e))}
		if opcode == cqeReqErr {
			q.retireSend(counter(e), c)
		} else {
			q.retireRecv(e, c)
		}
	default:
		return false
	}
	return true
}

// counter is the block at which the completed send began, or the number of the receive.
func counter(e []byte) uint32 { return uint32(binary.BigEndian.Uint16(e[60:])) }

// sendKind tells what kind of request was completed.
func (q *ends) sendKind(e []byte, slot uint32, c *cq.Completion) {
	switch cqeSopDropQPN.Get(e) >> 24 {
	case opcodeWriteImm:
		c.Flags = cq.HasImm
		fallthrough
	case opcodeWrite:
		c.Opcode = cq.Write
	case opcodeSendImm:
		c.Flags = cq.HasImm
		fallthrough
	case opcodeSend, opcodeSendInvalidate:
		c.Opcode = cq.Send
	case opcodeRead:
		c.Opcode, c.ByteLen = cq.Read, cqeByteCount.Get(e)
	case opcodeCompareSwap:
		c.Opcode, c.ByteLen = cq.CompareSwap, 8
	case opcodeFetchAdd:
		c.Opcode, c.ByteLen = cq.FetchAdd, 8
	case opcodeUMR:
		c.Opcode = cq.Opcode(q.sq.opcode(slot))
	}
}

// retireSend frees the request that begins at a block and those before it, which
// were not signaled.
func (q *ends) retireSend(slot uint32, c *cq.Completion) {
	c.ID = q.sq.id(slot)
	q.sq.complete(q.sq.head(slot) + 1)
}

// retireRecv frees a receive: they complete in order. The entry names it all the same.
func (q *ends) retireRecv(e []byte, c *cq.Completion) {
	c.ID = q.rq.id(counter(e))
	q.rq.complete(q.rq.completed() + 1)
}

// status gives the completion status of a syndrome.
func status(syndrome uint8) cq.Status {
	switch syndrome {
	case syndromeLocalLength:
		return cq.LocalLengthError
	case syndromeLocalQPOp:
		return cq.LocalQPOperationError
	case syndromeLocalProt:
		return cq.LocalProtectionError
	case syndromeFlush:
		return cq.WRFlushError
	case syndromeMWBind:
		return cq.MWBindError
	case syndromeBadResp:
		return cq.BadResponseError
	case syndromeLocalAccess:
		return cq.LocalAccessError
	case syndromeRemoteInvReq:
		return cq.RemoteInvalidRequestError
	case syndromeRemoteAccess:
		return cq.RemoteAccessError
	case syndromeRemoteOp:
		return cq.RemoteOperationError
	case syndromeRetryExceeded:
		return cq.RetryExceededError
	case syndromeRNRExceeded:
		return cq.RNRRetryExceededError
	case syndromeRemoteAborted:
		return cq.RemoteAbortedError
	}
	return cq.GeneralError
}
