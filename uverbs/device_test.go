//go:build linux

package uverbs

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// realDevice finds the device that the tests may use.
func realDevice(t *testing.T) Device {
	t.Helper()
	name := testdev.Name(t)
	devs, err := (&System{}).Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devs {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("no device %s among %+v", name, devs)
	return Device{}
}

// The device is found whole; TestDeviceTwoWays holds sysfs against netlink.
func TestDeviceDiscovery(t *testing.T) {
	testdev.Verb(t, "device: list")
	d := realDevice(t)
	if d.Err != nil || d.Driver == DriverUnknown || d.Ports < 1 || d.NodeGUID == 0 || d.Major == 0 {
		t.Errorf("device %+v", d)
	}
	if err := (&System{}).Probe(d); err != nil {
		t.Error(err)
	}
}

// oldKernel refuses every native method that has a fall-back which works for the device.
func oldKernel(d Device) *System {
	return &System{Ioctl: func(fd int, page []byte) syscall.Errno {
		if c, err := Decode(page); err == nil {
			m := lookup(c.Object, c.Method, c.Command)
			if m == mGetContext && testdev.GetContextByWrite.Here(d.Name) {
				return ioctl(fd, page)
			}
			if fallbacks[m] != nil || m == mQueryGIDTable {
				return unix.EPROTONOSUPPORT
			}
		}
		return ioctl(fd, page)
	}}
}

// Every control verb works on the real kernel, by the native methods and by the
// older commands, with the same results.
func TestDeviceVerbs(t *testing.T) {
	d := realDevice(t)
	for name, s := range map[string]*System{"native": {}, "fall-back": oldKernel(d)} {
		t.Run(name, func(t *testing.T) {
			if name == "native" {
				testdev.Verb(t, "device: open", "device: query", "port: query", "port: GID table", "PD: allocate", "MR: register",
					"CQ: create", "QP: create", "QP: modify", "QP: query")
			} else {
				testdev.Verb(t, "CQ: create by the older command", "QP: create by the older command")
			}
			testVerbs(t, s, d)
		})
	}
}

// The older command that makes a context, by which the fall-back starts.
func TestDeviceOpenByCommand(t *testing.T) {
	testdev.Verb(t, "device: open by the older command")
	d := realDevice(t)
	testdev.GetContextByWrite.Skip(t, d.Name)
	c, err := oldKernel(d).Open(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func testVerbs(t *testing.T, s *System, d Device) {
	fds, maps := openFDs(t), mmio.Live()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.Open(d, nil)
	must(err)
	attr, err := c.QueryDevice()
	must(err)
	if attr.MaxQP < 1 || attr.MaxCQE < 1 || attr.MaxSGE < 1 || attr.CompVectors < 1 {
		t.Errorf("limits %+v", attr)
	}
	port, err := c.QueryPort(1)
	must(err)
	if port.State != verbs.PortActive || port.ActiveMTU.Bytes() == 0 || port.MaxMessage == 0 || port.GIDs < 1 ||
		port.PhysState == 0 || port.Speed.Gbps() == 0 || port.SpeedGbps == 0 {
		t.Errorf("port %+v", port)
	}
	if _, err := c.QueryPort(200); !errors.Is(err, unix.EINVAL) {
		t.Errorf("port 200: %v", err)
	}
	gids, err := c.GIDTable(1)
	must(err)
	if len(gids) < 1 || gids[0].GID.IsZero() || gids[0].NetDev == "" {
		t.Errorf("GIDs %+v", gids)
	}
	bySysfs, err := c.sysfsGIDs(1)
	must(err)
	if len(bySysfs) != len(gids) || bySysfs[0] != gids[0] {
		t.Errorf("GIDs by sysfs %+v, by ioctl %+v", bySysfs, gids)
	}

	pd, err := c.AllocPD(nil)
	must(err)
	testWindow(t, c, pd, attr.Flags.Windows())
	mem, err := mmio.Anonymous(8192)
	must(err)
	mrh, lkey, rkey, err := c.RegMR(pd, mr.Addr(mem.Bytes()), 8192, mr.LocalWrite|mr.RemoteWrite|mr.RelaxedOrdering, nil)
	must(err)
	if lkey == 0 || rkey == 0 {
		t.Errorf("keys %#x, %#x", lkey, rkey)
	}
	ch, err := c.CreateCompChannel()
	must(err)
	cqh, entries, err := c.CreateCQ(&CQConfig{Entries: 63, Channel: ch, UserHandle: 5}, &UHW{Out: make([]byte, 16)})
	must(err)
	if entries < 63 {
		t.Errorf("%d entries, asked for 63", entries)
	}
	n, err := c.NewNotifier(cqh)
	must(err)
	must(n.Arm(false))
	n.Close()
	qph, num, caps, err := c.CreateQP(&QPConfig{PD: pd, SendCQ: cqh, RecvCQ: cqh, UserHandle: 6,
		Caps: qp.Caps{SendWR: 16, RecvWR: 16, SendSGE: 2, RecvSGE: 2, Inline: 64}}, &UHW{Out: make([]byte, 32)})
	must(err)
	if num == 0 || caps.SendWR < 16 || caps.SendSGE < 2 || caps.Inline < 64 {
		t.Errorf("queue pair %#x with %+v", num, caps)
	}
	bell, err := c.NewDoorbell(qph)
	must(err)
	if err := bell.Ring(); !errors.Is(err, unix.EINVAL) {
		t.Errorf("doorbell in RESET: %v", err)
	}
	bell.Close()
	for _, g := range []qp.AttrMask{qp.MaskState, qp.MaskState | qp.MaskPort} {
		if err := c.ModifyQP(qph, &qp.Attr{State: qp.Init, Port: 1}, g); !errors.Is(err, unix.EINVAL) {
			t.Errorf("RESET to INIT with %v: %v", g, err)
		}
	}
	must(c.ModifyQP(qph, &qp.Attr{State: qp.Init, Port: 1, Access: mr.RemoteWrite}, qp.MaskState|qp.MaskPort|qp.MaskPKeyIndex|qp.MaskAccess))
	a, err := c.QueryQP(qph)
	must(err)
	if a.State != qp.Init || a.Port != 1 || a.Access&mr.RemoteWrite == 0 {
		t.Errorf("attributes %+v", a)
	}
	if err := c.DeallocPD(pd); !errors.Is(err, unix.EBUSY) {
		t.Errorf("domain in use: %v", err)
	}
	if _, err := c.DestroyCQ(cqh); !errors.Is(err, unix.EBUSY) {
		t.Errorf("completion queue in use: %v", err)
	}
	if r, err := c.DestroyQP(qph); err != nil || r != (Reported{}) {
		t.Errorf("destroying: %+v, %v", r, err)
	}
	if r, err := c.DestroyCQ(cqh); err != nil || r != (Reported{}) {
		t.Errorf("destroying: %+v, %v", r, err)
	}
	if _, err := c.DestroyCQ(cqh); err == nil {
		t.Error("destroyed twice")
	}
	must(ch.Close())
	must(c.DeregMR(mrh))
	must(c.DeallocPD(pd))
	must(c.Close())
	must(mem.Close())
	if f, m := openFDs(t), mmio.Live(); f != fds || m != maps {
		t.Errorf("%d descriptors and %d mappings at the end, %d and %d at the start", f, m, fds, maps)
	}
}

// testWindow makes and frees a memory window, or finds that there are none in the
// way that it has to be said.
func testWindow(t *testing.T, c *Context, pd PDHandle, have bool) {
	t.Helper()
	mw, rkey, err := c.AllocMW(pd)
	if !have {
		if !errors.Is(err, verbs.ErrUnsupported) {
			t.Errorf("window %d of a device without: %v", mw, err)
		}
		return
	}
	if err != nil || rkey == 0 {
		t.Fatalf("window with key %#x: %v", rkey, err)
	}
	if err := c.DeallocPD(pd); !errors.Is(err, unix.EBUSY) {
		t.Errorf("domain with a window: %v", err)
	}
	if err := c.DeallocMW(mw); err != nil {
		t.Error(err)
	}
	if err := c.DeallocMW(mw); err == nil {
		t.Error("freed twice")
	}
}

// A wrong driver id is refused by the kernel, and the error says what to look at.
func TestDeviceWrongDriver(t *testing.T) {
	d := realDevice(t)
	d.Driver++
	if c, err := (&System{}).Open(d, nil); !errors.Is(err, unix.EINVAL) {
		t.Errorf("context %v, %v", c, err)
	}
}

// As an ordinary user with little lockable memory: the registration is refused
// with the limit and the remedies, and works after the limit was raised. The test
// runs itself again as that user.
func TestDeviceMemlock(t *testing.T) {
	testdev.Verb(t, "MR: register within the limit of locked memory")
	d := realDevice(t)
	if os.Getenv("UVERBS_TEST_MEMLOCK") == "" {
		runAsNobody(t, "TestDeviceMemlock", "UVERBS_TEST_MEMLOCK=1")
		return
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 65536, Max: 8 << 20}); err != nil {
		t.Fatal(err)
	}
	c, err := (&System{}).Open(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pd, err := c.AllocPD(nil)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := mmio.Anonymous(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	_, _, _, err = c.RegMR(pd, mr.Addr(mem.Bytes()), 4<<20, mr.LocalWrite, nil)
	if !errors.Is(err, unix.ENOMEM) {
		t.Fatalf("registration beyond the limit: %v", err)
	}
	for _, text := range []string{d.Name, "RLIMIT_MEMLOCK is 65536 bytes", "4194304 bytes", "ulimit -l", "CAP_IPC_LOCK"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q lacks %q", err, text)
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 8 << 20, Max: 8 << 20}); err != nil {
		t.Fatal(err)
	}
	h, _, _, err := c.RegMR(pd, mr.Addr(mem.Bytes()), 4<<20, mr.LocalWrite, nil)
	if err != nil {
		t.Fatalf("after the limit was raised: %v", err)
	}
	if err := c.DeregMR(h); err != nil {
		t.Error(err)
	}
}

// As an ordinary user, on a node that only root may open.
func TestDevicePermission(t *testing.T) {
	d := realDevice(t)
	if os.Getenv("UVERBS_TEST_PERMISSION") == "" {
		st, err := os.Stat(d.Path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d.Path, 0o600); err != nil {
			t.Skipf("the node's mode cannot be changed: %v", err)
		}
		defer os.Chmod(d.Path, st.Mode().Perm())
		runAsNobody(t, "TestDevicePermission", "UVERBS_TEST_PERMISSION=1")
		return
	}
	_, err := (&System{}).Open(d, nil)
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), d.Path) || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("opening without permission: %v", err)
	}
	if err := (&System{}).Probe(d); !errors.Is(err, os.ErrPermission) {
		t.Errorf("probing without permission: %v", err)
	}
}

// runAsNobody runs one test of this binary again as the user 65534, without
// capabilities. It needs root.
func runAsNobody(t *testing.T, test, env string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	self, err := os.Open("/proc/self/exe") // the binary may lie where the user cannot reach
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	cmd := exec.Command("/proc/self/fd/3", "-test.run=^"+test+"$", "-test.v")
	cmd.ExtraFiles = []*os.File{self}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	t.Logf("as user 65534:\n%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
		t.Errorf("as user 65534: %v", err)
	}
}
