package ps

import (
	"encoding/binary"

	"github.com/byteexpress/byteexpress/archon"
)

// batch is what a replica sends to another, little-endian:
//
//	 0  u64  incarnation of the sender
//	 8  u64  incarnation of the receiver, as far as the sender knows; 0: not at all
//	16  u64  base: the receiver has the sender's log up to here
//	24  u64  upto: with the entries it has it up to here
//	32  u64  have: the sender has the receiver's log up to here
//	40  u64  incarnation of the receiver that have is about
//	48  u64  pushes that the sender has applied
//	56  u32  number of the receiver
//	60  u32  number of the sender
//	64  u32  flags: 1 the sender is joining, 2 the receiver needs a snapshot
//	68  u32  version of the sender's map
//	72  entries: length u32, kind u32, its bytes, padded to 8
type batch struct {
	inc, toInc, base, upto, have, haveInc, count uint64
	from, sender                                 int // from is the receiver's number
	joining, gap                                 bool
	version                                      uint32
}

const (
	batchHeader = 72
	maxBatch    = 1 << 20 // about how many bytes of entries go at once

	flagJoining = 1
	flagGap     = 2
	flagGranted = 2 // of a reply
	flagKnows   = 4

	replyBytes = 32
)

func (m *batch) append(b []byte) []byte {
	for _, v := range [...]uint64{m.inc, m.toInc, m.base, m.upto, m.have, m.haveInc, m.count} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(m.from))
	b = binary.LittleEndian.AppendUint32(b, uint32(m.sender))
	flags := uint32(0)
	if m.joining {
		flags |= flagJoining
	}
	if m.gap {
		flags |= flagGap
	}
	b = binary.LittleEndian.AppendUint32(b, flags)
	return binary.LittleEndian.AppendUint32(b, m.version)
}

func (m *batch) setUpto(b []byte) { binary.LittleEndian.PutUint64(b[24:], m.upto) }

func uptoOf(b []byte) uint64 { return binary.LittleEndian.Uint64(b[24:]) }

func appendEntry(b []byte, kind entryKind, payload []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, uint32(kind))
	b = append(b, payload...)
	return append(b, make([]byte, -len(payload)&7)...)
}

// parseBatch checks a batch down to the lengths of its entries.
func parseBatch(b []byte) (m batch, entries []byte, err error) {
	if len(b) < batchHeader {
		return m, nil, archon.Errorf(archon.InvalidArgument, "request of a replica of %d bytes, at least %d", len(b), batchHeader)
	}
	for i, v := range [...]*uint64{&m.inc, &m.toInc, &m.base, &m.upto, &m.have, &m.haveInc, &m.count} {
		*v = binary.LittleEndian.Uint64(b[8*i:])
	}
	to, from := binary.LittleEndian.Uint32(b[56:]), binary.LittleEndian.Uint32(b[60:])
	flags := binary.LittleEndian.Uint32(b[64:])
	m.version = binary.LittleEndian.Uint32(b[68:])
	if flags > flagJoining|flagGap || to > maxReplicas || from > maxReplicas || m.inc == 0 || m.upto < m.base {
		return m, nil, archon.Errorf(archon.InvalidArgument, "request of a replica with flags %#x, from %d to %d, positions %d to %d", flags, from, to, m.base, m.upto)
	}
	m.from, m.sender, m.joining, m.gap = int(to), int(from), flags&flagJoining != 0, flags&flagGap != 0
	entries = b[batchHeader:]
	for rest := entries; len(rest) > 0; {
		if len(rest) < 8 {
			return m, nil, archon.Errorf(archon.InvalidArgument, "entry of %d bytes", len(rest))
		}
		n, kind := uint64(binary.LittleEndian.Uint32(rest)), entryKind(binary.LittleEndian.Uint32(rest[4:]))
		if (n+7)&^7 > uint64(len(rest)-8) || kind > entryAbort {
			return m, nil, archon.Errorf(archon.InvalidArgument, "entry of kind %d and %d bytes, %d are there", kind, n, len(rest)-8)
		}
		rest = rest[8+(n+7)&^7:]
	}
	return m, entries, nil
}

// nextEntry takes an entry off checked entries.
func nextEntry(b []byte) (kind entryKind, payload, rest []byte) {
	n := uint64(binary.LittleEndian.Uint32(b))
	return entryKind(binary.LittleEndian.Uint32(b[4:])), b[8 : 8+n], b[8+(n+7)&^7:]
}

// batchReply answers a batch:
//
//	 0  u64  incarnation
//	 8  u64  the sender's log is applied up to here, if flag 4 says so
//	16  u64  pushes that were applied
//	24  u32  flags: 1 joining, 2 the lease is granted, 4 the second word counts
//	28  u32  version of its map
type batchReply struct {
	inc, want, count        uint64
	joining, granted, knows bool
	version                 uint32
}

func (r *batchReply) append(b []byte) []byte {
	flags := uint32(0)
	if r.joining {
		flags |= flagJoining
	}
	if r.granted {
		flags |= flagGranted
	}
	if r.knows {
		flags |= flagKnows
	}
	for _, v := range [...]uint64{r.inc, r.want, r.count} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, flags)
	return binary.LittleEndian.AppendUint32(b, r.version)
}

func parseBatchReply(b []byte) (r batchReply, err error) {
	if len(b) != replyBytes {
		return r, archon.Errorf(archon.Internal, "answer of a replica of %d bytes, must be %d", len(b), replyBytes)
	}
	r.inc, r.want, r.count = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	flags := binary.LittleEndian.Uint32(b[24:])
	r.version = binary.LittleEndian.Uint32(b[28:])
	if r.inc == 0 || flags > flagJoining|flagGranted|flagKnows {
		return r, archon.Errorf(archon.Internal, "answer of replica %#x with flags %#x", r.inc, flags)
	}
	r.joining, r.granted, r.knows = flags&flagJoining != 0, flags&flagGranted != 0, flags&flagKnows != 0
	return r, nil
}
