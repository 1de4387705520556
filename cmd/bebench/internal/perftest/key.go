package perftest

import (
	"fmt"
	"strconv"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Lengths of a key in bytes, with its final 0 (KEY_MSG_SIZE and KEY_MSG_SIZE_GID of
// perftest_communication.h).
const (
	shortKey = 59
	longKey  = 108
)

// Key describes one queue pair and the memory that the peer may reach.
type Key struct {
	LID   uint16
	Reads uint16 // outstanding READs and atomics, in either direction
	Num   qp.Num
	PSN   qp.PSN
	RKey  uint32
	Addr  uint64
	// Global tells that GID is there. Both ends must agree: perftest has a GID on
	// Ethernet, and on InfiniBand when it is given -x.
	Global bool
	GID    verbs.GID
}

// append adds the key's text.
func (k *Key) append(b []byte) []byte {
	b = fmt.Appendf(b, "%04x:%04x:%06x:%06x:%08x:%016x:", k.LID, k.Reads, uint32(k.Num), uint32(k.PSN&qp.PSNMask), k.RKey, k.Addr)
	if k.Global {
		for _, v := range k.GID {
			b = fmt.Appendf(b, "%02x:", v)
		}
	}
	// The number of a shared receive queue, which XRC and DC have.
	b = fmt.Appendf(b, "%08x", 0)
	if k.Global {
		b = append(b, ':')
	}
	return append(b, 0)
}

// isLong tells from a key's first shortKey bytes whether more follow.
func isLong(b []byte) bool { return b[shortKey-1] != 0 }

// parseKey reads a whole key.
func parseKey(b []byte) (k Key, err error) {
	want := shortKey
	if len(b) >= shortKey && isLong(b) {
		want, k.Global = longKey, true
	}
	if len(b) != want {
		return k, errors.Errorf("key of %d bytes, want %d", len(b), want)
	}
	at := 0
	field := func(digits int, end byte) (v uint64) {
		if err != nil {
			return 0
		}
		if v, err = strconv.ParseUint(string(b[at:at+digits]), 16, 64); err == nil && b[at+digits] != end {
			err = errors.Errorf("%q after %d digits, want %q", b[at+digits], digits, end)
		}
		at += digits + 1
		return v
	}
	k.LID, k.Reads = uint16(field(4, ':')), uint16(field(4, ':'))
	k.Num, k.PSN = qp.Num(field(6, ':')), qp.PSN(field(6, ':'))
	k.RKey, k.Addr = uint32(field(8, ':')), field(16, ':')
	if !k.Global {
		field(8, 0)
		return k, err
	}
	for i := range k.GID {
		k.GID[i] = byte(field(2, ':'))
	}
	field(8, ':')
	return k, err
}
