package nic

import (
	"testing"
	"unsafe"
)

// TestQPIsCompact: what packets need of a queue pair is in six lines of the cache, with
// where its send requests are, and a send request is one. Go puts objects of 633 to 696 bytes
// 8 bytes behind multiples of 64.
func TestQPIsCompact(t *testing.T) {
	var q QP
	if at := unsafe.Offsetof(q.busy); at != 0 || busyBytes > 6*64-8 {
		t.Errorf("what packets need is at byte %d and has %d bytes, want 0 and no more than 376", at, busyBytes)
	}
	if n := unsafe.Sizeof(q); n <= 632 || n > 696 {
		t.Errorf("a queue pair has %d bytes, want 633 to 696", n)
	}
	if n := unsafe.Sizeof(sendWQE{}); n != 64 {
		t.Errorf("a send request has %d bytes, want 64", n)
	}
}
