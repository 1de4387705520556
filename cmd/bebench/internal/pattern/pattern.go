// Package pattern makes and checks the bytes that tests send: a sequence that
// depends on a seed and on the offset, so that bytes which are missing, moved or
// of another message do not pass.
package pattern

import "encoding/binary"

// step is the difference between consecutive 8-byte words: odd, with its bits
// spread (2^64 divided by the golden ratio), so every shift shows.
const step = 0x9e3779b97f4a7c15

// Seed derives the seed of one message buffer from the seeds and numbers that
// name it (splitmix64's finaliser over each).
func Seed(parts ...uint64) uint64 {
	h := uint64(step)
	for _, p := range parts {
		h += p + step
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// Fill writes the sequence of the seed to b. A shorter sequence is a prefix of a
// longer one.
func Fill(b []byte, seed uint64) {
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, seed)
		b, seed = b[8:], seed+step
	}
	for i := range b {
		b[i] = byte(seed >> (8 * i))
	}
}

// Check gives the offset of the first byte of b that is not the sequence's, -1
// if all are. It does not allocate.
func Check(b []byte, seed uint64) int {
	n := len(b)
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b) != seed {
			break
		}
		b, seed = b[8:], seed+step
	}
	for i := range b[:min(len(b), 8)] {
		if b[i] != byte(seed>>(8*i)) {
			return n - len(b) + i
		}
	}
	return -1
}
