package rpcjob

import (
	"bytes"
	"encoding/binary"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
)

// stampBytes is the least length of a message: it begins with its number, and ends with
// it if there is room for both.
const stampBytes = 8

func stamp(b []byte, n uint64) {
	binary.LittleEndian.PutUint64(b, n)
	if len(b) >= 2*stampBytes {
		binary.LittleEndian.PutUint64(b[len(b)-stampBytes:], n)
	}
}

// stamped is a request that begins and ends with its number.
type stamped struct {
	size int
	n    uint64
	want []byte // its other bytes; nil: any
}

func (r *stamped) fill(b []byte) {
	copy(b, r.want)
	stamp(b, r.n)
}

// Size is the number of bytes.
func (r *stamped) Size() int { return r.size }

// Append appends the request.
func (r *stamped) Append(dst []byte) ([]byte, error) {
	from := len(dst)
	dst = dst[:from+r.size] // archon gives as much as Size says
	r.fill(dst[from:])
	return dst, nil
}

// checkStamp compares what came back with what was sent: its length and stamps, and all
// its bytes if want is not nil.
func checkStamp(b []byte, size int, n uint64, want []byte) error {
	switch {
	case len(b) != size:
		return exit.Mismatchf("data mismatch: message %d has %d bytes, want %d", n, len(b), size)
	case binary.LittleEndian.Uint64(b) != n || size >= 2*stampBytes && binary.LittleEndian.Uint64(b[size-stampBytes:]) != n:
		return exit.Mismatchf("data mismatch: message %d begins or ends as another", n)
	case want != nil && size > 2*stampBytes && !bytes.Equal(b[stampBytes:size-stampBytes], want[stampBytes:size-stampBytes]):
		return exit.Mismatchf("data mismatch: message %d has other bytes", n)
	}
	return nil
}
