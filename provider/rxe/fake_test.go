//go:build linux

package rxe

import (
	"encoding/binary"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// fakeKernel stands in for the rxe driver: it hands out queues in a memory file,
// which is also its device node, and pipes for events. It runs nothing by itself:
// tests put completions and events where they want them.
type fakeKernel struct {
	t *testing.T

	mu       sync.Mutex
	memory   *os.File
	end      int64 // of the memory handed out
	next     uint32
	qps      uint32 // made
	requests int
	fail     func(n int, c *uverbs.Call) syscall.Errno // n counts from 0
	bad      string                                    // kind of queue to hand out with a header of no sense
	objects  map[uint64]string                         // alive, by handle: what they are
	events   []*os.File                                // write ends: async events first, then completion channels
	reported uint32                                    // async events that destroying a queue pair reports
	last     map[string]int64                          // offset of the last queue of a kind
}

const fakeLog2, fakeMask = 9, 15

func newFake(t *testing.T) *fakeKernel {
	fd, err := unix.MemfdCreate("rings", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	k := &fakeKernel{t: t, memory: os.NewFile(uintptr(fd), "rings"), next: 100, last: map[string]int64{}, objects: map[uint64]string{}}
	t.Cleanup(func() {
		k.memory.Close()
		for _, f := range k.events {
			f.Close()
		}
	})
	return k
}

func (k *fakeKernel) device() *Device {
	sys := &uverbs.System{SysRoot: k.t.TempDir(), Ioctl: k.ioctl, OpenNode: func(string) (int, uint64, error) {
		fd, err := unix.FcntlInt(k.memory.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		return fd, unix.Mkdev(231, 192), err
	}}
	return New(sys, uverbs.Device{Name: "rxe7", Node: "uverbs0", Path: "/dev/infiniband/uverbs0", Major: 231, Minor: 192, Driver: uverbs.DriverRXE, ABI: 2, Ports: 1})
}

func (k *fakeKernel) ioctl(fd int, page []byte) syscall.Errno {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, err := uverbs.Decode(page)
	if err != nil {
		k.t.Error(err)
		return unix.EINVAL
	}
	n := k.requests
	k.requests++
	if k.fail != nil {
		if errno := k.fail(n, c); errno != 0 {
			return errno
		}
	}
	u32 := func(b []byte, off int, v uint32) { binary.NativeEndian.PutUint32(b[off:], v) }
	handle := func() uint32 { k.next++; return k.next }
	switch c.Op {
	case "open async event file":
		binary.NativeEndian.PutUint64(c.Attr("FD_HANDLE").Value, uint64(k.pipe()))
	case "create completion channel":
		u32(c.Attr("CORE_OUT").Bytes, 0, uint32(k.pipe()))
	case "open context":
		u32(c.Attr("NUM_COMP_VECTORS").Bytes, 0, 1)
	case "query device": // struct ib_uverbs_query_device_resp
		for _, off := range []int{52, 56, 72, 76, 80, 84, 88, 100, 156, 160} { // limits: any number will do
			u32(c.Attr("CORE_OUT").Bytes, off, 1000)
		}
		u32(c.Attr("CORE_OUT").Bytes, 64, 16)  // max_sge
		u32(c.Attr("CORE_OUT").Bytes, 164, 16) // max_srq_sge
		binary.NativeEndian.PutUint64(c.Attr("CORE_OUT").Bytes[24:], 1<<30)
	case "query port":
		u32(c.Attr("RESP").Bytes, 4, 1<<20) // max_msg_sz
	case "register dmabuf memory region":
		u32(c.Attr("HANDLE").Value, 0, handle())
	case "allocate protection domain", "register memory region", "allocate memory window":
		u32(c.Attr("CORE_OUT").Bytes, 0, handle())
	case "create completion queue":
		u32(c.Attr("HANDLE").Value, 0, handle())
		k.queue("cq", c.Attr("UHW_OUT").Bytes)
	case "create queue pair":
		u32(c.Attr("HANDLE").Value, 0, handle())
		u32(c.Attr("RESP_QP_NUM").Bytes, 0, 17+k.qps)
		k.qps++
		for i := range 5 {
			u32(c.Attr("RESP_CAP").Bytes, 4*i, binary.NativeEndian.Uint32(c.Attr("CAP").Bytes[4*i:]))
		}
		k.queue("rq", c.Attr("UHW_OUT").Bytes)
		k.queue("sq", c.Attr("UHW_OUT").Bytes[16:])
	case "create shared receive queue":
		u32(c.Attr("HANDLE").Value, 0, handle())
		k.queue("srq", c.Attr("UHW_OUT").Bytes)
	case "resize completion queue":
		k.queue("cq", c.Attr("UHW_OUT").Bytes)
	case "destroy shared receive queue", "destroy queue pair":
		u32(c.Attr("RESP").Bytes, 0, k.reported)
	}
	k.account(c)
	return 0
}

// account keeps the table of objects that are alive.
func (k *fakeKernel) account(c *uverbs.Call) {
	kind, made := strings.CutPrefix(c.Op, "create ")
	if !made {
		kind, made = strings.CutPrefix(c.Op, "allocate ")
	}
	if !made {
		kind, made = strings.CutPrefix(c.Op, "register ")
	}
	switch h := c.Attr("HANDLE"); {
	case made && h != nil:
		k.objects[binary.NativeEndian.Uint64(h.Value)] = kind
	case made && kind != "completion channel":
		k.objects[uint64(binary.NativeEndian.Uint32(c.Attr("CORE_OUT").Bytes))] = kind
	case h != nil:
		n := binary.NativeEndian.Uint64(h.Value)
		if k.objects[n] == "" {
			k.t.Errorf("%s: there is no object %d", c.Op, n)
		}
		delete(k.objects, n)
	}
}

func (k *fakeKernel) pipe() int {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		k.t.Fatal(err)
	}
	k.events = append(k.events, os.NewFile(uintptr(p[1]), "events"))
	return p[0]
}

// queue makes a queue in the memory file and describes it in a struct mminfo.
func (k *fakeKernel) queue(kind string, info []byte) {
	size := int64(queueSize+(fakeMask+1)<<fakeLog2+4095) &^ 4095
	off := k.end
	k.end += size
	if err := k.memory.Truncate(k.end); err != nil {
		k.t.Fatal(err)
	}
	h := header(fakeLog2, fakeMask, 0)
	if k.bad == kind {
		queueIndexMask.Put(h, 1<<20-1)
	}
	k.memory.WriteAt(h, off)
	mapInfoOffset.Put(info, uint64(off))
	mapInfoLength.Put(info, uint32(size))
	k.last[kind] = off
}

// complete adds completions to the last completion queue, as the kernel does.
func (k *fakeKernel) complete(cs ...cq.Completion) {
	k.mu.Lock()
	defer k.mu.Unlock()
	off := k.last["cq"]
	var word [4]byte
	k.memory.ReadAt(word[:], off+int64(queueProducerIndex))
	producer := binary.NativeEndian.Uint32(word[:])
	for _, c := range cs {
		e := make([]byte, wcSize)
		wcWRID.Put(e, c.ID)
		wcStatus.Put(e, uint32(c.Status))
		wcQPNum.Put(e, uint32(c.QPNum))
		if c.Flags&cq.HasInvalidate != 0 {
			wcWcFlags.Put(e, uint32(wcWithInvalidate))
			wcInvalidateRkey.Put(e, c.Imm)
		}
		k.memory.WriteAt(e, off+queueSize+int64(producer)<<fakeLog2)
		producer = (producer + 1) & fakeMask
	}
	binary.NativeEndian.PutUint32(word[:], producer)
	k.memory.WriteAt(word[:], off+int64(queueProducerIndex))
}

// event sends an asynchronous event.
func (k *fakeKernel) event(element uint64, typ verbs.EventType) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := make([]byte, 16) // struct ib_uverbs_async_event_desc
	binary.NativeEndian.PutUint64(b, element)
	binary.NativeEndian.PutUint32(b[8:], uint32(typ))
	k.events[0].Write(b)
}
