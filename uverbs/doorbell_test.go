//go:build linux

package uverbs

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/mr"
)

// TestDoorbellWrites holds what is written against struct ib_uverbs_cmd_hdr and struct
// ib_uverbs_post_send: 32 bytes are 8 words.
func TestDoorbellWrites(t *testing.T) {
	fds := make([]int, 2)
	if err := unix.Pipe2(fds, unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[1])
	c := &Context{sys: &System{}, fd: fds[1], dev: Device{Name: "fake0"}}
	defer c.pages.close()
	d, err := c.NewDoorbell(0x1234)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if n := testing.AllocsPerRun(10, func() {
		if err := d.Ring(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Ring allocates %v times", n)
	}
	got := make([]byte, 33)
	n, err := unix.Read(fds[0], got[:32])
	if err != nil || n != 32 {
		t.Fatalf("%d bytes, %v; want 32", n, err)
	}
	word := func(at int) uint32 { return binary.NativeEndian.Uint32(got[at:]) }
	half := func(at int) uint16 { return binary.NativeEndian.Uint16(got[at:]) }
	if word(0) != 28 || half(4) != 8 || half(6) != 1 {
		t.Errorf("header % x: want command 28, 8 words in, 1 out", got[:8])
	}
	page := mr.Addr(d.r.b)
	if response := binary.NativeEndian.Uint64(got[8:]); response < page || response > page+pageSize-4 {
		t.Errorf("response at %#x, which is not in the command page at %#x", response, page)
	}
	if word(16) != 0x1234 || word(20) != 0 || word(24) != 0 || word(28) != wqeSize {
		t.Errorf("command % x: want the handle, no requests, no segments, and the size of one", got[16:32])
	}

	// What cannot be written goes by the ioctl, whose error counts; a pipe knows none.
	unix.Close(fds[0])
	if err := d.Ring(); !errors.Is(err, unix.ENOTTY) || d.command != nil {
		t.Errorf("error %v, want the ioctl's %v", err, unix.ENOTTY)
	}
	d.Close()
	if err := d.Ring(); err == nil {
		t.Error("a closed doorbell rings")
	}
}
