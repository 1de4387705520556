package be

import (
	"testing"
	"unsafe"
)

// TestConnIsCompact: what each message needs of its connection is in one line of the
// cache. Go puts objects of 241 to 256 bytes on multiples of 256.
func TestConnIsCompact(t *testing.T) {
	var c conn
	if n := unsafe.Offsetof(c.place); n > 64 {
		t.Errorf("what each message needs ends at byte %d, want 64 at most", n)
	}
	if n := unsafe.Sizeof(c); n <= 240 || n > 256 {
		t.Errorf("a connection has %d bytes, want 241 to 256", n)
	}
}
