package nic

import (
	"testing"
	"unsafe"
)

// TestQPIsCompact: what packets need of a queue pair is in six lines of the cache, and a send
// request is one. Go puts objects of 641 to 704 bytes on multiples of 64.
func TestQPIsCompact(t *testing.T) {
	var q QP
	if at, n := unsafe.Offsetof(q.busy), unsafe.Sizeof(q.busy); at != 0 || n > 6*64 {
		t.Errorf("what packets need is at byte %d and has %d bytes, want 0 and no more than 384", at, n)
	}
	if n := unsafe.Sizeof(q); n <= 640 || n > 704 {
		t.Errorf("a queue pair has %d bytes, want 641 to 704", n)
	}
	if n := unsafe.Sizeof(sendWQE{}); n != 64 {
		t.Errorf("a send request has %d bytes, want 64", n)
	}
}
