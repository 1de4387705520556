package fabric

import (
	"testing"
	"unsafe"
)

// TestFrameSize: what every hop looks at is one cache line, at the begin of one.
func TestFrameSize(t *testing.T) {
	var fr frame
	if size, hot := unsafe.Sizeof(fr), unsafe.Offsetof(fr.flow); size%64 != 0 || hot > 64 {
		t.Errorf("a frame takes %d bytes and its hot fields %d, want a multiple of 64 and 64 at most", size, hot)
	}
}
