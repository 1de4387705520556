package testdev

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// MarkFault starts the reason of a test that was skipped because of a kernel's fault.
const MarkFault = "testdev: kernel fault: "

// Fault is what a range of kernels does wrong, so that a test of it fails, or takes
// the whole machine down, whatever we do.
type Fault struct {
	Driver string // kernel driver, as "rxe"; "" means any
	From   string // first kernel that has it, as "5.10"; "" means the first of all
	Before string // first kernel without it; "" means that none is known
	What   string // what the kernel does, and what then happens
}

// The faults that are known. All were seen in the kernel lab; a range says between
// which of its kernels the fault went or came.
var (
	// LostErrors: drivers/infiniband/sw/rxe before 6.1 as a tasklet.
	LostErrors = Fault{Driver: "rxe", Before: "6.1",
		What: "the driver neither tells a requester what its peer refused nor flushes sends posted in ERR"}
	// RNRLoop: rxe_requester and rxe_do_task call each other for ever, in the system
	// call that posts.
	RNRLoop = Fault{Driver: "rxe", Before: "6.1",
		What: "a batch of sends for which the peer has no receive locks up the processor that posts it, and then the machine"}
	// NoLastWQE: the driver got the event with flush_recv_queue of 6.4
	// (drivers/infiniband/sw/rxe/rxe_resp.c).
	NoLastWQE = Fault{Driver: "rxe", Before: "6.4",
		What: "the driver does not report QP_LAST_WQE_REACHED of a queue pair with a shared receive queue"}
	// WindowBounds: check_rkey of drivers/infiniband/sw/rxe/rxe_resp.c looks at the
	// region's range, not at the window's.
	WindowBounds = Fault{Driver: "rxe",
		What: "a peer reaches by a memory window's key all of the region that the window is bound to, not only the window's range"}
	// PhantomPacket: an acknowledgement of the whole of a message that is being sent again
	// moves the requester's next PSN past it (rxe_completer). When the timer ends once more,
	// req_retry (drivers/infiniband/sw/rxe/rxe_req.c) takes all packets of that message
	// for sent and has its next packet made of the rest: a message without a byte.
	// perftest against itself shows it at once: ib_write_bw -q 16 -t 32 -b -u 1 -s 65536.
	// It was seen on 6.12 and 7.2, under load by timers of 67 ms; 5.10 and 6.1 have the same
	// code, but there a device hears most of its own packets before it sends the next.
	PhantomPacket = Fault{Driver: "rxe",
		What: "when the timer ends twice over a message of several packets, an empty packet goes out after it and shifts those that follow: REM_INV_REQ_ERR or REM_OP_ERR, and data at the wrong place before that; timers longer than any delay keep it away"}
	// GetContextByWrite: UVERBS_METHOD_INVOKE_WRITE has the command's number under
	// the attribute's id under which GET_CONTEXT has its array of capability files
	// (ib_uapi UVERBS_ATTR_GET_CONTEXT_FD_ARR), and 7.2 takes one for the other.
	GetContextByWrite = Fault{From: "6.15",
		What: "the command GET_CONTEXT by ioctl takes its own number for a list of capability files and fails with EBADF; the native method works"}
)

// Skip skips the test of a device if the kernel here has the fault.
func (f Fault) Skip(t testing.TB, device string) {
	t.Helper()
	if f.Here(device) {
		t.Skip(MarkFault + f.What)
	}
}

// Here tells whether the kernel and its driver of the device have the fault. A device
// that is not the kernel's, as a simulated one, has none.
func (f Fault) Here(device string) bool {
	d := driver("/sys/class/infiniband", device)
	return d != "" && (f.Driver == "" || f.Driver == d) && f.in(release())
}

// in tells whether a kernel release, as uname(1) has it, is in the fault's range.
func (f Fault) in(release string) bool {
	return version(release)[0] > 0 && CompareReleases(release, f.From) >= 0 && (f.Before == "" || CompareReleases(release, f.Before) < 0)
}

// version is the major and the minor number of a release; zero for none.
func version(release string) (v [2]int) {
	for i, part := range strings.SplitN(release, ".", 3) {
		if i < len(v) {
			end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
			if end < 0 {
				end = len(part)
			}
			v[i], _ = strconv.Atoi(part[:end])
		}
	}
	return v
}

// CompareReleases orders two kernel releases by major and minor number.
func CompareReleases(a, b string) int {
	v, w := version(a), version(b)
	return cmp.Or(cmp.Compare(v[0], w[0]), cmp.Compare(v[1], w[1]))
}

// release is that of the running kernel, "" where there is no /proc.
func release() string {
	b, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(b))
}

// driver is the kernel driver of an RDMA device, "" if the kernel has no such device in
// sysfs's directory of them. A device of software has no hardware that sysfs could show a
// driver of; the only one in our tests is rxe.
func driver(devices, device string) string {
	dir := filepath.Join(devices, device)
	if _, err := os.Stat(dir); device == "" || err != nil {
		return ""
	}
	target, err := os.Readlink(filepath.Join(dir, "device", "driver"))
	if err != nil {
		return "rxe"
	}
	return filepath.Base(target)
}
