package fabric

import (
	"testing"
	"unsafe"
)

// TestFrameSize: what every hop looks at is one cache line, at the begin of one, and so is
// what a packet needs of its flow. Go puts objects of 113 to 128 bytes on multiples of 128.
func TestFrameSize(t *testing.T) {
	var fr frame
	if size, hot := unsafe.Sizeof(fr), unsafe.Offsetof(fr.pkt); size%64 != 0 || hot > 64 {
		t.Errorf("a frame takes %d bytes and its hot fields %d, want a multiple of 64 and 64 at most", size, hot)
	}
	var fl flow
	if size, hot := unsafe.Sizeof(fl), unsafe.Offsetof(fl.react.alpha); size != 128 || hot > 64 {
		t.Errorf("a flow takes %d bytes and its hot fields %d, want 128 and 64 at most", size, hot)
	}
}
