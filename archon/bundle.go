package archon

import (
	"encoding/binary"

	"github.com/pkg/errors"
)

// Over ByteExpress, short messages travel in bundles: as many as have come together
// share one message of package be, and so its work request, completion and credit. A
// bundle is
//
//	0  u8   0xb1, which is no version of a header
//	1  u8   0
//	2  u16  number of messages, at least 1
//
// and each message behind its u32 length, from a multiple of 4 on. Integers are
// little-endian. Longer messages travel by themselves, without a copy.
const (
	bundleMagic  = 0xb1
	bundleHeader = 4
	// bundleBytes bounds a bundle; be.DefaultEagerBytes, so that it is sent at once.
	bundleBytes = 8 << 10
	// bundledBytes is the longest message that is bundled. It is copied, on both sides,
	// into memory of the Go heap, which costs less than a work request of its own.
	bundledBytes = 2 << 10
)

// bundledSize is what a message of n bytes takes of a bundle.
func bundledSize(n int) int { return (4 + n + 3) &^ 3 }

// appendBundled adds a message to a bundle with room for it, and gives its new length.
func appendBundled(bundle []byte, length int, message []byte) int {
	binary.LittleEndian.PutUint32(bundle[length:], uint32(len(message)))
	end := length + 4 + copy(bundle[length+4:], message)
	next := length + bundledSize(len(message))
	clear(bundle[end:next])
	return next
}

// putBundleHeader completes a bundle of n messages.
func putBundleHeader(bundle []byte, n int) {
	bundle[0], bundle[1] = bundleMagic, 0
	binary.LittleEndian.PutUint16(bundle[2:], uint16(n))
}

// isBundle tells a bundle from a message that travels by itself.
func isBundle(b []byte) bool { return len(b) > 0 && b[0] == bundleMagic }

// eachBundled gives the messages of a bundle to f, those before an error too.
func eachBundled(b []byte, f func(message []byte)) error {
	if len(b) < bundleHeader || b[0] != bundleMagic || b[1] != 0 {
		return errors.Wrap(ErrProtocol, "bundle without a header")
	}
	count, rest := int(binary.LittleEndian.Uint16(b[2:])), b[bundleHeader:]
	for range count {
		if len(rest) < 4 {
			return errors.Wrapf(ErrProtocol, "bundle of %d messages that ends before", count)
		}
		n := binary.LittleEndian.Uint32(rest)
		if n > bundledBytes || bundledSize(int(n)) > len(rest) {
			return errors.Wrapf(ErrProtocol, "bundled message of %d bytes, %d are left and at most %d are taken", n, len(rest)-4, bundledBytes)
		}
		f(rest[4 : 4+n])
		rest = rest[bundledSize(int(n)):]
	}
	if count == 0 || len(rest) != 0 {
		return errors.Wrapf(ErrProtocol, "bundle of %d messages and %d bytes more", count, len(rest))
	}
	return nil
}
