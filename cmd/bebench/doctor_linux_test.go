package main

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/doctor"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/internal/testdev"
)

// doctored is the report of a run for a device.
func doctored(t *testing.T, code int, args ...string) *doctor.Report {
	t.Helper()
	r := bebench(context.Background(), append([]string{"doctor", "--json", "-"}, args...)...)
	r.want(t, code)
	var d doctor.Report
	if err := json.Unmarshal([]byte(r.out), &d); err != nil {
		t.Fatalf("%v in:\n%s", err, r.out)
	}
	return &d
}

// found gives the severity of a check, "" if it was not made.
func found(r *doctor.Report, check string) doctor.Severity {
	for _, f := range r.Findings {
		if f.Check == check {
			return f.Severity
		}
	}
	return ""
}

func TestDeviceDoctor(t *testing.T) {
	name := testdev.Name(t)
	r := doctored(t, exit.Done, "-d", name)
	for _, check := range []string{"modules", "rdma_cm", "memlock", "node", "port", "gid", "loop"} {
		if found(r, check) != doctor.OK {
			t.Errorf("%s is %q: %+v", check, found(r, check), r.Findings)
		}
	}
}

// Control: without the right to open the node, and with little locked memory, doctor
// says so.
func TestDeviceDoctorFindsTroubles(t *testing.T) {
	name := testdev.Name(t)
	chmodNodes(t, 0o600)
	asNobody(t, "doctor", "-d", name).want(t, exit.Failed, "permission "+name, "permission denied", "chmod 666")
	chmodNodes(t, 0o666)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 64 << 10, Max: old.Max}); err != nil {
		t.Skipf("RLIMIT_MEMLOCK: %v", err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &old) }()
	asNobody(t, "doctor", "-d", name).want(t, exit.Failed, "RLIMIT_MEMLOCK is 64 KiB", "-> ulimit -l")
}

// A port whose interface is down is found, and works again when it is up.
func TestDeviceDoctorStoppedPort(t *testing.T) {
	name := testdev.Name(t)
	l := testdev.Interface(t, name)
	if err := netlink.LinkSetDown(l); err != nil {
		t.Fatal(err)
	}
	up := func() {
		if err := netlink.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
	}
	defer up()
	bebench(context.Background(), "doctor", "-d", name).want(t, exit.Failed, "port "+name+" port 1", "DOWN, not ACTIVE", "ip link set "+l.Attrs().Name+" up")
	bebench(context.Background(), "devices", "--why").want(t, exit.Done, "rejected: no port can be used: port 1 is DOWN", "default: sim:")
	up()
	for range 200 { // the device hears of it a moment later
		if bebench(context.Background(), "doctor", "-d", name).code == exit.Done {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	bebench(context.Background(), "doctor", "-d", name).want(t, exit.Done)
}

func TestDeviceDoctorsOfTwoHosts(t *testing.T) {
	name := testdev.Name(t)
	p := port(t)
	stop := serverProcess(t, p, "doctor", "-d", name, "--serve", "-1")
	clientProcess(t, "doctor", "-d", name, "-p", p, "127.0.0.1").want(t, exit.Done, "peer-gid", "RoCE v2 at both ends", "0 errors")
	if code, out := stop(); code != exit.Done {
		t.Errorf("server: exit status %d\n%s", code, out)
	}
}
