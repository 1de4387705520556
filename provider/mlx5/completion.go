package mlx5

import (
	"encoding/binary"

	"github.com/byteexpress/byteexpress/cq"
)

// ends is what completions of a queue pair need of it.
type ends struct {
	num cq.QPNum
	id  uint32 // by which completions name it
	sq  book
	rq  book

	shared *sharedRecv // gives the receives; nil: rq
	inside *payloads   // where payload inside entries belongs; nil: none comes
}

// numberMask are the bits of a queue pair's number or user index.
const numberMask = 0xffffff

// received reports whether entries of an opcode retire a receive.
func received(opcode uint8) bool {
	return opcode >= cqeRespWriteImm && opcode <= cqeRespSendInvalidate || opcode == cqeRespErr
}

// complete decodes an entry and retires its request. own is its last byte, p the
// payload inside it, if it says so there. false: an entry of a kind that this
// package does not ask for.
func (q *ends) complete(e []byte, own uint8, p []byte, c *cq.Completion) bool {
	switch opcode := own >> 4; opcode {
	case cqeReq:
		*c = cq.Completion{QPNum: q.num}
		slot := counter(e)
		q.sendKind(e, slot, c)
		if own&formatMask != 0 {
			c.Status = q.unloadSend(slot, p, c.ByteLen)
		}
		q.retireSend(slot, c)
	case cqeRespWriteImm, cqeRespSend, cqeRespSendImm, cqeRespSendInvalidate:
		*c = cq.Completion{QPNum: q.num, ByteLen: cqeByteCount.Get(e)}
		if own&formatMask != 0 {
			if c.Status = q.unloadRecv(counter(e), p, c.ByteLen); c.Status != cq.Success {
				q.retireRecv(e, c)
				break
			}
		}
		c.Opcode = cq.Recv
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

// retireRecv frees a receive. Those of a queue of its own complete in order; the
// entry names it all the same.
func (q *ends) retireRecv(e []byte, c *cq.Completion) {
	if q.shared != nil {
		c.ID = q.shared.retire(counter(e))
		return
	}
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
