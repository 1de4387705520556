//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// verb makes each request of the table through the exported interface.
var verb = map[*method]func(*Context) error{
	mQueryDevice:   func(c *Context) error { _, err := c.QueryDevice(); return err },
	mQueryPort:     func(c *Context) error { _, err := c.QueryPort(1); return err },
	mQueryGIDTable: func(c *Context) error { _, err := c.GIDTable(1); return err },
	mAllocPD:       func(c *Context) error { _, err := c.AllocPD(nil); return err },
	mPDDestroy:     func(c *Context) error { return c.DeallocPD(16) },
	mRegMR:         func(c *Context) error { _, _, _, err := c.RegMR(16, 1<<30, 4<<20, mr.LocalWrite, nil); return err },
	mMRDestroy:     func(c *Context) error { return c.DeregMR(16) },
	mCreateCompChannel: func(c *Context) error {
		ch, err := c.CreateCompChannel()
		if err != nil {
			return err
		}
		return ch.Close()
	},
	mCQCreate:  func(c *Context) error { _, _, err := c.CreateCQ(&CQConfig{Entries: 4096}, nil); return err },
	mCQDestroy: func(c *Context) error { _, err := c.DestroyCQ(16); return err },
	mReqNotifyCQ: func(c *Context) error {
		n, err := c.NewNotifier(16)
		if err != nil {
			return err
		}
		defer n.Close()
		return n.Arm(false)
	},
	mQPCreate: func(c *Context) error {
		_, _, _, err := c.CreateQP(&QPConfig{Caps: qp.Caps{SendWR: 512}}, nil)
		return err
	},
	mSRQCreate: func(c *Context) error {
		_, _, err := c.CreateSRQ(&SRQConfig{Caps: qp.SRQCaps{RecvWR: 16}}, nil)
		return err
	},
	mSRQDestroy: func(c *Context) error { _, err := c.DestroySRQ(16); return err },
	mModifySRQ:  func(c *Context) error { return c.ArmSRQ(16, 8, nil) },
	mQuerySRQ:   func(c *Context) error { _, err := c.QuerySRQ(16); return err },
	mResizeCQ:   func(c *Context) error { _, err := c.ResizeCQ(16, 8, nil); return err },
	mQPDestroy:  func(c *Context) error { _, err := c.DestroyQP(16); return err },
	mModifyQP:   func(c *Context) error { return c.ModifyQP(16, &qp.Attr{State: qp.RTR}, qp.MaskState|qp.MaskAV) },
	mQueryQP:    func(c *Context) error { _, err := c.QueryQP(16); return err },
	mPostSend: func(c *Context) error {
		d, err := c.NewDoorbell(16)
		if err != nil {
			return err
		}
		defer d.Close()
		return d.Ring()
	},
	mReregMR: func(c *Context) error {
		_, _, err := c.ReregMR(16, 17, Rereg{Rights: true, Access: mr.LocalWrite})
		return err
	},
	mRegDMABufMR:    func(c *Context) error { _, _, _, err := c.RegDMABufMR(16, 5, 0, 4096, 4096, mr.LocalWrite); return err },
	mAdviseMR:       func(c *Context) error { return c.AdviseMR(16, mr.Prefetch, true, []qp.SGE{{Addr: 4096, Length: 1}}) },
	mAllocMW:        func(c *Context) error { _, _, err := c.AllocMW(16); return err },
	mMWDestroy:      func(c *Context) error { return c.DeallocMW(16) },
	mMLX5UARAlloc:   func(c *Context) error { _, err := c.AllocMLX5UAR(true); return err },
	mMLX5UARDestroy: func(c *Context) error { return c.DestroyMLX5UAR(16) },
}

// fallbacks maps a native method to the command that is used without it.
var fallbacks = map[*method]*method{mGetContext: wGetContext, mCQCreate: wCreateCQ, mCQDestroy: wDestroyCQ, mQPCreate: wCreateQP, mQPDestroy: wDestroyQP,
	mSRQCreate: wCreateSRQ, mSRQDestroy: wDestroySRQ}

// Whatever errno a request gets, the error names device, operation and errno, has
// its kind and a remedy; and nothing leaks.
func TestEveryErrno(t *testing.T) {
	kinds := map[syscall.Errno]struct {
		kind error
		text string
	}{
		unix.EIO:             {verbs.ErrDeviceLost, "open it anew"},
		unix.EPROTONOSUPPORT: {verbs.ErrUnsupported, "kernel"},
		unix.EOPNOTSUPP:      {verbs.ErrUnsupported, "driver rxe"},
		unix.ENOTTY:          {verbs.ErrUnsupported, "kernel 5.0"},
		unix.ENOMEM:          {nil, ""},
		unix.EAGAIN:          {nil, "rdma cgroup"},
		unix.EBUSY:           {nil, "first"},
		unix.EINVAL:          {nil, "limits"},
		unix.EMFILE:          {nil, "RLIMIT_NOFILE"},
		unix.EACCES:          {nil, "device rules"},
		unix.EPERM:           {nil, "device rules"},
		unix.ENODEV:          {nil, "namespace"},
		unix.ETIMEDOUT:       {nil, "route"},
		unix.EHOSTUNREACH:    {nil, "route"},
		unix.ENOSPC:          {nil, "out of"},
		unix.EFAULT:          {nil, "not mapped"},
		unix.EXDEV:           {nil, ""}, // one that we do not know
	}
	for m, do := range verb {
		for errno, want := range kinds {
			t.Run(fmt.Sprintf("%s/%s", m.op, unix.ErrnoName(errno)), func(t *testing.T) {
				k := newFake(t)
				c := k.open()
				k.fail = func(call *Call) syscall.Errno {
					if call.Op == m.op { // also its fall-back
						return errno
					}
					return 0
				}
				fds := openFDs(t)
				err := do(c)
				if n := openFDs(t); n != fds {
					t.Errorf("%d descriptors, %d before", n, fds)
				}
				if m == mQueryGIDTable && errno == unix.EPROTONOSUPPORT { // goes on to sysfs, which is empty here
					if !errors.Is(err, unix.ENOENT) {
						t.Errorf("fall-back to sysfs: %v", err)
					}
					return
				}
				var op *verbs.OpError
				if !errors.As(err, &op) || !errors.Is(err, errno) || op.Op != m.op || op.Device != "rxe7" {
					t.Fatalf("error is %#v: %v", err, err)
				}
				if want.kind != nil && !errors.Is(err, want.kind) {
					t.Errorf("%v is not %v", err, want.kind)
				}
				if !strings.Contains(err.Error(), want.text) {
					t.Errorf("%q lacks %q", err, want.text)
				}
				if want.text != "" && op.Remedy == "" {
					t.Errorf("%q has no remedy", err)
				}
			})
		}
	}
	for _, m := range methods {
		_, tested := verb[m]
		for native, w := range fallbacks {
			tested = tested || m == w || m == native
		}
		if !tested && m != mAsyncAlloc {
			t.Errorf("%s (%d.%d) is not made by any verb of this test", m.op, m.object, m.id)
		}
	}
}

// A request that a signal interrupted is made again, however often; the caller does
// not hear of it.
func TestInterrupted(t *testing.T) {
	for m, do := range verb {
		k := newFake(t)
		c := k.open()
		times := 0
		k.fail = func(call *Call) syscall.Errno {
			if call.Op == m.op && times < 3 {
				times++
				return unix.EINTR
			}
			return 0
		}
		if err := do(c); err != nil || times != 3 {
			t.Errorf("%s: interrupted %d times: %v", m.op, times, err)
		}
	}
}

// Opening fails cleanly at each of its requests, and at the node itself.
func TestOpenErrors(t *testing.T) {
	for _, m := range []*method{mGetContext, mAsyncAlloc} {
		for _, errno := range []syscall.Errno{unix.EIO, unix.EAGAIN, unix.EMFILE, unix.ENOTTY} {
			k := newFake(t)
			k.fail = func(c *Call) syscall.Errno {
				if c.Op == m.op {
					return errno
				}
				return 0
			}
			fds := openFDs(t)
			_, err := k.system().Open(fakeDevice, nil)
			var op *verbs.OpError
			if !errors.As(err, &op) || !errors.Is(err, errno) || op.Remedy == "" {
				t.Errorf("%s: %v: %v", m.op, errno, err)
			}
			if n := openFDs(t) - len(k.events); n != fds {
				t.Errorf("%s: %v: %d descriptors, %d before", m.op, errno, n, fds)
			}
		}
	}
	for _, tt := range []struct {
		errno syscall.Errno
		kind  error
		text  string
	}{
		{unix.EACCES, os.ErrPermission, "chmod"}, {unix.EPERM, os.ErrPermission, "--device"}, {unix.ENOENT, os.ErrNotExist, "ib_uverbs"},
		{unix.ENXIO, verbs.ErrDeviceLost, "list"}, {unix.EMFILE, unix.EMFILE, "RLIMIT_NOFILE"},
	} {
		s := &System{SysRoot: t.TempDir(), OpenNode: func(string) (int, uint64, error) { return -1, 0, tt.errno }}
		_, err := s.Open(fakeDevice, nil)
		for _, text := range []string{"rxe7", fakeDevice.Path, tt.text} {
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), text) {
				t.Errorf("%v: %q is not %v, or lacks %q", tt.errno, err, tt.kind, text)
			}
		}
	}
}

func openFDs(t *testing.T) int {
	t.Helper()
	e, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(e)
}

// A registration that the memlock limit refuses says what the limit is, what was
// asked for, and every way to raise it.
func TestMemlock(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 65536, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_MEMLOCK, &old)
	k := newFake(t)
	c := k.open()
	k.fail = func(*Call) syscall.Errno { return unix.ENOMEM }
	_, _, _, err := c.RegMR(16, 1<<30, 4<<20, mr.LocalWrite, nil)
	if !errors.Is(err, unix.ENOMEM) {
		t.Fatal(err)
	}
	for _, text := range []string{"RLIMIT_MEMLOCK is 65536 bytes", "4194304 bytes", "ulimit -l", "--ulimit memlock", "CAP_IPC_LOCK"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q lacks %q", err, text)
		}
	}
	if _, err := c.AllocPD(nil); !errors.Is(err, unix.ENOMEM) || strings.Contains(err.Error(), "RLIMIT_MEMLOCK") {
		t.Errorf("a request that pins nothing blames the limit: %v", err)
	}
}

// On a kernel without a native method the older command is used, from then on at
// once, and gives the same.
func TestFallback(t *testing.T) {
	k := newFake(t)
	k.fail = func(c *Call) syscall.Errno {
		for native := range fallbacks {
			if lookup(c.Object, c.Method, c.Command) == native {
				return unix.EPROTONOSUPPORT
			}
		}
		return 0
	}
	c := k.open()
	if len(k.calls) != 2 || k.last().Command != cmdGetContext {
		t.Fatalf("opening made %+v", k.calls)
	}
	for native, w := range fallbacks {
		do := verb[native]
		if do == nil {
			continue
		}
		for i, want := range []int{2, 1, 1} {
			before := len(k.calls)
			if err := do(c); err != nil {
				t.Errorf("%s: %v", native.op, err)
			}
			if n := len(k.calls) - before; n != want || lookup(k.last().Object, k.last().Method, k.last().Command) != w {
				t.Errorf("%s, time %d: %d requests, the last %+v", native.op, i+1, n, k.last())
			}
		}
	}
}

// Without the kernel's word that it tolerates them, optional access flags are left out.
func TestOptionalAccess(t *testing.T) {
	for _, tolerant := range []bool{true, false} {
		k := newFake(t)
		c := k.open()
		if !tolerant {
			c.core = 0
		}
		if _, _, _, err := c.RegMR(1, 4096, 4096, mr.LocalWrite|mr.RelaxedOrdering, nil); err != nil {
			t.Fatal(err)
		}
		want := uint32(mr.LocalWrite)
		if tolerant {
			want |= uint32(mr.RelaxedOrdering)
		}
		if got := regMRAccessFlags.Get(k.last().Attr("CORE_IN").Bytes); got != want {
			t.Errorf("tolerant %v: access flags %#x, want %#x", tolerant, got, want)
		}
	}
}

// A request on a closed context does not reach the kernel.
func TestClosed(t *testing.T) {
	k := newFake(t)
	c := k.open()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	n := len(k.calls)
	if _, err := c.AllocPD(nil); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("request on a closed context: %v", err)
	}
	if err := c.Close(); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
	if len(k.calls) != n {
		t.Error("a request was made after close")
	}
}

// What is closed twice does no harm: a command page is given back once, or two
// requests would be written over each other.
func TestClosedTwice(t *testing.T) {
	k := newFake(t)
	c := k.open()
	d, err := c.NewDoorbell(1)
	if err != nil {
		t.Fatal(err)
	}
	n, err := c.NewNotifier(1)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		d.Close()
		n.Close()
		if err := d.Ring(); !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("ringing a closed doorbell: %v", err)
		}
		if err := n.Arm(true); !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("arming with a closed notifier: %v", err)
		}
	}
	pages := map[*byte]bool{}
	for range 4 {
		r, err := c.begin(mPostSend, 64)
		if err != nil {
			t.Fatal(err)
		}
		defer r.release()
		if pages[&r.b[0]] {
			t.Error("two requests have the same command page")
		}
		pages[&r.b[0]] = true
	}
	ch, err := c.CreateCompChannel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Close(); err != nil {
		t.Error(err)
	}
	if err := ch.Close(); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("channel closed twice: %v", err)
	}
}

// Ringing and arming allocate nothing.
func TestNoAllocations(t *testing.T) {
	k := newFake(t)
	sys := k.system()
	c, err := sys.Open(fakeDevice, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sys.Ioctl = func(int, []byte) syscall.Errno { return 0 }
	d, err := c.NewDoorbell(1)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	n, err := c.NewNotifier(1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if a := testing.AllocsPerRun(100, func() {
		if d.Ring() != nil || n.Arm(true) != nil {
			t.Fatal("refused")
		}
	}); a != 0 {
		t.Errorf("%v allocations", a)
	}
}
