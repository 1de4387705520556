package main

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
)

// nobody is a user without rights (nobody on Debian and others).
const nobody = 65534

// asNobody runs the command as a user without rights.
func asNobody(t *testing.T, args ...string) result {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	cmd := process(t, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	var out, errout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errout
	_ = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal("the command does not start as nobody")
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errout.String()}
}

// chmodNodes sets the mode of all device nodes, until the test ends.
func chmodNodes(t *testing.T, mode os.FileMode) {
	t.Helper()
	nodes, err := filepath.Glob("/dev/infiniband/uverbs*")
	if err != nil || len(nodes) == 0 {
		t.Fatalf("no device node: %v", err)
	}
	for _, node := range nodes {
		st, err := os.Stat(node)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(node, mode); err != nil {
			t.Skipf("no right to change %s: %v", node, err)
		}
		t.Cleanup(func() { _ = os.Chmod(node, st.Mode()) })
	}
}

func TestDeviceWithoutPermission(t *testing.T) {
	name := kernelDevice(t)
	chmodNodes(t, 0o600)
	asNobody(t, "devices").want(t, exit.Done, name, "cannot be used", "permission")
	for _, command := range [][]string{{"send", "lat"}, {"msg", "bw"}, {"ps"}} {
		asNobody(t, append(command, "-d", name, "--local")...).want(t, exit.Failed, "/dev/infiniband/uverbs", "permission")
	}
}

func TestDeviceWithTooLittleLockedMemory(t *testing.T) {
	name := kernelDevice(t)
	chmodNodes(t, 0o666)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &old); err != nil {
		t.Fatal(err)
	}
	const limit = 64 << 10
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
		t.Skipf("RLIMIT_MEMLOCK: %v", err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &old) }()
	asNobody(t, "send", "bw", "-d", name, "--local", "-s", "1M", "-n", "10").want(t, exit.Failed, name, "RLIMIT_MEMLOCK", "ulimit -l")
	asNobody(t, "msg", "lat", "-d", name, "--local", "-n", "10").want(t, exit.Failed, name, "RLIMIT_MEMLOCK", "ulimit -l")
}
