package mlx5

import (
	"github.com/byteexpress/byteexpress/cq"
)

// payloads are the rings of a queue pair that lets the NIC put short payload inside
// completion entries (scatter to CQE): it is then for whoever polls to move it to
// where the request says.
type payloads struct {
	sends     []byte
	recvs     []byte
	recvShift uint
}

// unloadRecv moves the n bytes that came with a receive's entry to its segments.
func (q *ends) unloadRecv(index uint32, p []byte, n uint32) cq.Status {
	k := q.inside
	switch {
	case k == nil:
		return cq.GeneralError
	case uint64(n) > uint64(len(p)):
		return cq.LocalLengthError
	}
	var w []byte
	if q.shared != nil {
		w = q.shared.segments(index)
	} else {
		at := int(index&q.rq.mask) << k.recvShift
		w = k.recvs[at : at+1<<k.recvShift]
	}
	if _, done := place(w, p[:n]); !done {
		return cq.LocalLengthError
	}
	return cq.Success
}

// unloadSend moves the n bytes that a READ or atomic fetched to its segments.
func (q *ends) unloadSend(slot uint32, p []byte, n uint32) cq.Status {
	k := q.inside
	switch {
	case k == nil:
		return cq.GeneralError
	case uint64(n) > uint64(len(p)):
		return cq.LocalLengthError
	}
	at := int(slot&q.sq.mask) << blockShift
	ctrl := k.sends[at:]
	units := int(ctrlQPNDS.Get(ctrl) & 0x3f)
	head := 2
	switch uint8(ctrlOpmodIdxOpcode.Get(ctrl)) {
	case opcodeRead:
	case opcodeCompareSwap, opcodeFetchAdd:
		head = 3
	default:
		return cq.RemoteInvalidRequestError
	}
	from, end := at+head*dataSize, at+max(units, head)*dataSize
	rest, done := place(k.sends[min(from, len(k.sends)):min(end, len(k.sends))], p[:n])
	if !done && end > len(k.sends) { // the request goes on where the ring begins
		_, done = place(k.sends[:min(end-max(len(k.sends), from), len(k.sends))], rest)
	}
	if !done {
		return cq.LocalLengthError
	}
	return cq.Success
}

// place copies p to the segments in a row. It gives what did not fit.
func place(segments, p []byte) (rest []byte, done bool) {
	for ; len(segments) >= dataSize; segments = segments[dataSize:] {
		n := min(int(dataByteCount.Get(segments)), len(p))
		if n > 0 {
			copy(memory(dataAddr.Get(segments), n), p)
			p = p[n:]
		}
		if len(p) == 0 {
			return nil, true
		}
	}
	return p, false
}
