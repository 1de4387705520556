package bemalloc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/mr"
)

func init() {
	childParts["memlock"] = memlockChild
	childParts["no-memlock-check"] = memlockChild
}

// locker is a device that pins what it registers, as a NIC's driver does, and so
// meets RLIMIT_MEMLOCK.
type locker struct{ pin bool }

func (l locker) Register(buf []byte, _ mr.Access) (mr.Region, error) {
	if l.pin {
		if err := unix.Mlock(buf); err != nil {
			return mr.Region{}, os.NewSyscallError("mlock", err)
		}
	}
	return mr.Region{Addr: mr.Addr(buf), Length: uint64(len(buf)), LKey: 1}, nil
}

func (l locker) Deregister(r mr.Region) error { return nil }

// TestMemlockTooSmall is case C07: with a memlock limit of 64 KiB an allocation
// fails within the call, the error names the limit, the need and the fixes, the
// pool is as before, and it works once the limit is raised. Control: a device
// that pins nothing does not fail.
func TestMemlockTooSmall(t *testing.T) {
	for part, want := range map[string]string{"memlock": "", "no-memlock-check": "the allocation succeeded"} {
		var r unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil || r.Max < 2*blockSize {
			t.Skipf("hard RLIMIT_MEMLOCK is %d bytes, the test needs to raise the soft one to 8 MiB (%v)", r.Max, err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childMode+"="+part)
		out, err := cmd.CombinedOutput()
		if (err == nil) != (want == "") || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", part, err, out)
		}
	}
}

// memlockChild runs in a process of its own.
func memlockChild() error {
	runtime.LockOSThread() // the capability is the thread's
	if err := dropIPCLock(); err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return err
	}
	limit.Cur = 64 << 10
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return err
	}
	clk := newClock()
	p, err := New(Config{Registrar: locker{os.Getenv(childMode) == "memlock"}, ReserveBytes: 1 << 30, noJanitor: true, now: clk.now})
	if err != nil {
		return err
	}
	_, err = p.Alloc(4 << 20)
	if err == nil {
		return errors.New("the allocation succeeded")
	}
	var re *RegisterError
	if !errors.As(err, &re) || !errors.Is(err, syscall.ENOMEM) && !errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("untyped error: %w", err)
	}
	for _, word := range []string{"65536", "4194304", "ulimit -l", "--ulimit memlock", "CAP_IPC_LOCK"} {
		if !strings.Contains(err.Error(), word) {
			return fmt.Errorf("the error does not name %s: %w", word, err)
		}
	}
	if s := p.Stats(); s.InUseBytes != 0 || s.RegisteredBytes != 0 || s.CachedBytes != 0 {
		return fmt.Errorf("the failure changed the pool: %+v", s)
	}
	limit.Cur = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return err
	}
	clk.advance(time.Second)
	b, err := p.Alloc(4 << 20)
	if err != nil {
		return fmt.Errorf("after the limit was raised: %w", err)
	}
	if err := unix.Munlock(b); err != nil {
		return err
	}
	return errors.Join(p.Free(b), p.Close())
}

// dropIPCLock gives up the capability that lifts the limit.
func dropIPCLock() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	data[0].Effective &^= 1 << unix.CAP_IPC_LOCK
	return os.NewSyscallError("capset", unix.Capset(&hdr, &data[0]))
}
