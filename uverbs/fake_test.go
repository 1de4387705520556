//go:build linux

package uverbs

import (
	"encoding/binary"
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/mmio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeKernel answers requests with handles that count up and descriptors of pipes.
// It decodes every request, which checks it against the table, and records it.
type fakeKernel struct {
	t      *testing.T
	calls  []Call
	fail   func(*Call) syscall.Errno
	next   uint32
	events []*os.File // write ends of the descriptors handed out, in order
}

// fakeDevice is what the fake kernel's node looks like in sysfs.
var fakeDevice = Device{Name: "rxe7", Node: "uverbs7", Path: "/dev/infiniband/uverbs7", Major: 231, Minor: 199, Driver: DriverRXE, Kernel: "rxe", ABI: 2, Ports: 1}

func newFake(t *testing.T) *fakeKernel {
	k := &fakeKernel{t: t, next: 16}
	t.Cleanup(func() {
		for _, f := range k.events {
			f.Close()
		}
	})
	return k
}

func (k *fakeKernel) system() *System {
	return &System{
		SysRoot: k.t.TempDir(),
		OpenNode: func(string) (int, uint64, error) {
			fd, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
			return fd, unix.Mkdev(231, 199), err
		},
		Ioctl: k.ioctl,
	}
}

// open opens the fake device; it is closed, and leaks are looked for, at the end.
func (k *fakeKernel) open() *Context {
	k.t.Helper()
	maps := mmio.Live()
	c, err := k.system().Open(fakeDevice, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		c.Close()
		if n := mmio.Live(); n != maps {
			k.t.Errorf("%d mappings at the end, %d at the start", n, maps)
		}
	})
	return c
}

func (k *fakeKernel) ioctl(fd int, page []byte) syscall.Errno {
	c, err := Decode(page)
	if err != nil {
		k.t.Errorf("a request that the table does not allow: %v", err)
		return unix.EINVAL
	}
	k.calls = append(k.calls, c.clone())
	if k.fail != nil {
		if errno := k.fail(c); errno != 0 {
			return errno
		}
	}
	m := lookup(c.Object, c.Method, c.Command)
	for i := range c.Attrs {
		switch a := &c.Attrs[i]; m.attr(a.ID).kind {
		case kindNewHandle:
			binary.NativeEndian.PutUint64(a.Value, uint64(k.handle()))
		case kindNewFD:
			binary.NativeEndian.PutUint64(a.Value, uint64(k.pipe()))
		}
	}
	if out := c.Attr("CORE_OUT"); out != nil {
		switch m {
		case wGetContext, mCreateCompChannel:
			binary.NativeEndian.PutUint32(out.Bytes, uint32(k.pipe()))
		default:
			binary.NativeEndian.PutUint32(out.Bytes, k.handle())
		}
	}
	if v := c.Attr("NUM_COMP_VECTORS"); v != nil {
		binary.NativeEndian.PutUint32(v.Bytes, 4)
		binary.NativeEndian.PutUint64(c.Attr("CORE_SUPPORT").Bytes, coreOptionalMRAccess)
	}
	if m == mQueryPort {
		portGIDTblLen.Put(c.Attr("RESP").Bytes, 1024) // as rxe's: the answer is larger than a command page
	}
	return 0
}

func (k *fakeKernel) handle() uint32 {
	k.next++
	return k.next
}

func (k *fakeKernel) pipe() int {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		k.t.Fatal(err)
	}
	k.events = append(k.events, os.NewFile(uintptr(p[1]), "events"))
	return p[0]
}

// last is the newest request.
func (k *fakeKernel) last() *Call { return &k.calls[len(k.calls)-1] }

// clone copies what points into the command page.
func (c *Call) clone() Call {
	n := *c
	n.Attrs = append([]CallAttr(nil), c.Attrs...)
	for i := range n.Attrs {
		a := &n.Attrs[i]
		a.Bytes = append([]byte(nil), a.Bytes...)
		a.Value = append([]byte(nil), a.Value...)
	}
	return n
}
