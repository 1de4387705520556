package bemalloc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// steadyChild is set in the process that strace looks at: the source of its buffers.
const steadyChild = "BEMALLOC_STEADY_CHILD"

// TestSteadyStateSyscalls runs a million allocations and frees of all sizes under
// strace: the thread that does them makes no system call, and no thread touches a
// mapping. The control, which gives memory back now and then, shows that this would
// be seen.
func TestSteadyStateSyscalls(t *testing.T) {
	if from := os.Getenv(steadyChild); from != "" {
		steadyLoad(t, from)
		return
	}
	if !havePin {
		t.Skip("this may be a build with the race detector, which maps memory of its own")
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	for _, from := range []string{"heap", "pool", "control"} {
		t.Run("from="+from, func(t *testing.T) {
			trace := filepath.Join(t.TempDir(), "trace")
			c := exec.Command(strace, "-f", "-o", trace, os.Args[0], "-test.run=^TestSteadyStateSyscalls$", "-test.count=1")
			c.Env = append(os.Environ(), steadyChild+"="+from)
			if out, err := c.CombinedOutput(); err != nil {
				if strings.Contains(string(out), "ptrace") || strings.Contains(string(out), "PTRACE") {
					t.Skipf("strace may not trace here: %.200s", out)
				}
				t.Fatalf("%v: %s", err, out)
			}
			own, mappings := callsBetweenMarks(t, trace)
			if bad := len(own)+len(mappings) > 0; bad != (from == "control") {
				t.Errorf("system calls of the thread: %q\nof any that touch mappings: %q", own, mappings)
			}
		})
	}
}

// callsBetweenMarks reads a trace from the mark before the load to the one after it.
// What the runtime does when it preempts a goroutine, every 10 ms, does not count: signals,
// the futex by which a locked thread gets its goroutine back, and the scheduler's look at
// the clock, a system call where the virtual machine's clock cannot be read otherwise.
// The load is the only user of the pool, so no lock of the pool waits.
func callsBetweenMarks(t *testing.T, trace string) (own, mappings []string) {
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	call := regexp.MustCompile(`^(\d+) +(\w+)`)
	signals := regexp.MustCompile(`^(rt_sigreturn|restart_syscall|sched_yield|futex|tgkill|getpid|clock_gettime)$`)
	maps := regexp.MustCompile(`^(mmap|munmap|mremap|mprotect|madvise|mlock|munlock|ioctl|brk)$`)
	thread, marks := "", 0
	for s := bufio.NewScanner(f); s.Scan(); {
		m := call.FindStringSubmatch(s.Text())
		switch {
		case strings.Contains(s.Text(), "steady-state-mark"):
			marks++
			thread = m[1]
		case marks != 1 || m == nil:
		case maps.MatchString(m[2]):
			mappings = append(mappings, m[2])
		case m[1] == thread && !signals.MatchString(m[2]):
			own = append(own, m[2])
		}
	}
	if marks != 2 {
		t.Fatalf("%d marks in the trace, want 2", marks)
	}
	return own, mappings
}

// steadyLoad does the work, between two writes that mark the trace.
func steadyLoad(t *testing.T, from string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := newPool(t, Config{noJanitor: true, PreallocBytes: 64 << 20})
	var a allocator = p
	if from == "heap" {
		h := p.NewHeap(HeapOptions{})
		defer h.Close()
		a = h
	}
	var live [256][]byte
	load := func(n int) {
		for i := range n {
			slot := &live[i*7%len(live)]
			if err := a.Free(*slot); err != nil {
				t.Fatal(err)
			}
			size := i * 37 % 20_000
			if i%16 == 0 {
				size = i * 4099 % (1 << 20)
			}
			b, err := a.Alloc(size)
			if err != nil {
				t.Fatal(err)
			}
			*slot = b
			if from == "control" && i%100_000 == 0 {
				p.Trim(0)
				free(t, p, must(t)(p.Alloc(2*blockSize))) // is mapped anew
			}
		}
	}
	runtime.GC()
	load(1_000_000)
	mark := []byte(fmt.Sprintf("steady-state-mark %s\n", from))
	_, _ = unix.Write(2, mark)
	load(1_000_000)
	_, _ = unix.Write(2, mark)
	for i, b := range live {
		free(t, p, b)
		live[i] = nil
	}
}
