package archon

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"
)

// longFrame is a message of n bytes as it travels.
func longFrame(n int) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(n))
	for i := range n {
		b = append(b, byte(i*i>>7))
	}
	return b
}

// TestLongMessages reads messages around the lengths at which memory grows.
func TestLongMessages(t *testing.T) {
	var wire []byte
	sizes := []int{trusted - 1, trusted, trusted + 1, 2 * trusted, 2*trusted + 1, 7 * trusted, 10}
	for _, n := range sizes {
		wire = append(wire, longFrame(n)...)
	}
	r := frameReader{conn: &pieces{wire, len(wire)}, max: 64 << 20, buf: make([]byte, readBuffer), ask: readBuffer}
	for _, n := range sizes {
		b, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b, longFrame(n)[4:]) {
			t.Errorf("message of %d bytes arrived changed, as %d bytes", n, len(b))
		}
		buffers.put(b)
	}
	if _, err := r.next(); err != io.EOF {
		t.Error("after the last:", err)
	}
}

// TestLengthIsAClaim takes little memory for a long message of which little comes.
func TestLengthIsAClaim(t *testing.T) {
	const claimed = 256 << 20
	wire := append(binary.LittleEndian.AppendUint32(nil, claimed), make([]byte, 100)...)
	r := frameReader{conn: &pieces{wire, len(wire)}, max: claimed, buf: make([]byte, readBuffer), ask: readBuffer}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := r.next()
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > claimed/16 {
		t.Errorf("took %d bytes for a message of which 100 came", took)
	}
}
