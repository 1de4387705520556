//go:build linux

package uverbs

import (
	"encoding/binary"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/qp"
)

// A shared receive queue is asked for alike by method and by command, and so is a
// queue pair that uses it; the answers are read from where each has them.
func TestSRQRequests(t *testing.T) {
	for _, old := range []bool{false, true} {
		k := newFake(t)
		k.fail = func(c *Call) syscall.Errno {
			m := lookup(c.Object, c.Method, c.Command)
			if old && (m == mSRQCreate || m == mSRQDestroy || m == mQPCreate) {
				return unix.EPROTONOSUPPORT
			}
			switch m {
			case mSRQCreate:
				binary.NativeEndian.PutUint32(c.Attr("RESP_MAX_WR").Bytes, 31)
				binary.NativeEndian.PutUint32(c.Attr("RESP_MAX_SGE").Bytes, 4)
			case wCreateSRQ:
				createSRQRespMaxWR.Put(c.Attr("CORE_OUT").Bytes, 31)
				createSRQRespMaxSGE.Put(c.Attr("CORE_OUT").Bytes, 4)
			case mSRQDestroy:
				destroySRQRespEventsReported.Put(c.Attr("RESP").Bytes, 17)
			}
			return 0
		}
		c := k.open()
		uhw := &UHW{Out: make([]byte, 24)}
		h, caps, err := c.CreateSRQ(&SRQConfig{PD: 7, Caps: qp.SRQCaps{RecvWR: 20, RecvSGE: 3}, UserHandle: 99}, uhw)
		if err != nil || uint32(h) != k.next || caps != (qp.SRQCaps{RecvWR: 31, RecvSGE: 4}) {
			t.Errorf("old %v: queue %d of %+v: %v", old, h, caps, err)
		}
		call := k.last()
		var pd, wr, sge uint32
		var user uint64
		if old {
			in := call.Attr("CORE_IN").Bytes
			pd, wr, sge, user = createSRQPDHandle.Get(in), createSRQMaxWR.Get(in), createSRQMaxSGE.Get(in), createSRQUserHandle.Get(in)
		} else {
			pd, wr, sge = u32(call.Attr("PD_HANDLE").Value), u32(call.Attr("MAX_WR").Bytes), u32(call.Attr("MAX_SGE").Bytes)
			user = u64(call.Attr("USER_HANDLE").Bytes)
			if fd := u32(call.Attr("EVENT_FD").Value); int(fd) != c.asyncFD {
				t.Errorf("events to descriptor %d, not %d", fd, c.asyncFD)
			}
		}
		if pd != 7 || wr != 20 || sge != 3 || user != 99 || len(call.Attr("UHW_OUT").Bytes) != 24 {
			t.Errorf("old %v: asked for domain %d, %d requests of %d segments, user handle %d", old, pd, wr, sge, user)
		}
		if _, _, _, err := c.CreateQP(&QPConfig{PD: 7, SRQ: &h}, nil); err != nil {
			t.Fatal(err)
		}
		if call = k.last(); old {
			in := call.Attr("CORE_IN").Bytes
			if createQPIsSRQ.Get(in) != 1 || createQPSRQHandle.Get(in) != uint32(h) {
				t.Errorf("queue pair asked for with %x", in)
			}
		} else if u32(call.Attr("SRQ_HANDLE").Value) != uint32(h) {
			t.Errorf("queue pair asked for with %+v", call)
		}
		n, err := c.DestroySRQ(h)
		if err != nil || n.Async == 0 {
			t.Errorf("destroyed with %d events: %v", n.Async, err)
		}
	}
}

// Arming, querying and resizing name the object and carry the number.
func TestSRQAndResizeCommands(t *testing.T) {
	k := newFake(t)
	c := k.open()
	if err := c.ArmSRQ(5, 12, &UHW{In: make([]byte, 8)}); err != nil {
		t.Fatal(err)
	}
	in := k.last().Attr("CORE_IN").Bytes
	if modifySRQSRQHandle.Get(in) != 5 || modifySRQAttrMask.Get(in) != srqMaskLimit || modifySRQLimit.Get(in) != 12 || len(k.last().Attr("UHW_IN").Bytes) != 8 {
		t.Errorf("armed with %x", in)
	}
	k.fail = func(c *Call) syscall.Errno {
		switch lookup(c.Object, c.Method, c.Command) {
		case mQuerySRQ:
			b := c.Attr("CORE_OUT").Bytes
			querySRQRespMaxSGE.Put(b, 3)
			querySRQRespLimit.Put(b, 12)
		}
		return 0
	}
	a, err := c.QuerySRQ(5)
	if err != nil || a.Caps.RecvSGE != 3 || a.Limit != 12 || a.Caps.RecvWR != int(k.next) || querySRQSRQHandle.Get(k.last().Attr("CORE_IN").Bytes) != 5 {
		t.Errorf("query gives %+v, %v", a, err)
	}
	n, err := c.ResizeCQ(6, 100, nil)
	in = k.last().Attr("CORE_IN").Bytes
	if err != nil || n != int(k.next) || resizeCQCQHandle.Get(in) != 6 || resizeCQCQE.Get(in) != 100 {
		t.Errorf("resized to %d by %x: %v", n, in, err)
	}
}
