package ps

import (
	"encoding/binary"
	"math"
)

// Rows travel as little-endian float32.

// putFloats writes src into dst, which has 4 bytes a value.
func putFloats(dst []byte, src []float32) {
	if hostLittleEndian {
		copy(dst, floatBytes(src))
		return
	}
	putFloatsSwapped(dst, src)
}

func putFloatsSwapped(dst []byte, src []float32) {
	for i, v := range src {
		putFloat(dst, i, v)
	}
}

// putFloat encodes value i of dst.
func putFloat(dst []byte, i int, v float32) {
	binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
}

// viewFloats makes the values in b, 4 bytes each, readable in place. b must not be
// read as bytes afterwards. Only where b does not lie as float32 must, the values are
// copied.
func viewFloats(b []byte) []float32 {
	if len(b) == 0 {
		return nil
	}
	if !floatAligned(b) {
		return copyFloats(b)
	}
	view := asFloats(b)
	if !hostLittleEndian {
		swapInPlace(b, view)
	}
	return view
}

// firstNotFinite gives the index of the first value in b that is NaN or an infinity,
// or -1.
func firstNotFinite(b []byte) int {
	// Adding one to an exponent of all ones carries into the place of the sign. Two
	// values are looked at together.
	const exponents, one, signs = 0x7f800000_7f800000, 0x00800000_00800000, 0x80000000_80000000
	var found uint64
	for rest := b; len(rest) >= 8; rest = rest[8:] {
		found |= binary.LittleEndian.Uint64(rest)&exponents + one
	}
	if n := len(b); n%8 == 4 {
		found |= uint64(binary.LittleEndian.Uint32(b[n-4:]))&exponents + one
	}
	if found&signs == 0 {
		return -1
	}
	for i := range len(b) / 4 {
		if g := floatAt(b, i); g-g != 0 {
			return i
		}
	}
	return -1
}

func copyFloats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = floatAt(b, i)
	}
	return out
}

func swapInPlace(b []byte, view []float32) {
	for i := range view {
		view[i] = floatAt(b, i)
	}
}

// floatAt decodes value i of b.
func floatAt(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}
