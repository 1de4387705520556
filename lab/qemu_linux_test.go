package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bootFake runs a script in the emulator's place, and prints its console.
func bootFake(ctx context.Context, script string) error {
	line := func(l []byte) { fmt.Printf("%s\n", l) }
	return boot(ctx, machine{qemu: tool{program: script}}, "", unpacked{}, "", line, line)
}

// fakeQEMU is a script that says its process id and then does what it is told.
func fakeQEMU(t *testing.T, then string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "qemu")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho $$\n"+then+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// gone waits until a process is no more, but for its parent to ask after it.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d is still there: %s", pid, stat)
		}
	}
}

// killable runs the test once more in a process of its own, with a variable set. It gives
// the first line that the process says, and what kills it.
func killable(t *testing.T, variable string) (said string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said, _ = bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(said), func() {
		t.Helper()
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
	}
}

// A lab that is killed takes its virtual machine along. The test runs itself as the lab.
func TestKilled(t *testing.T) {
	if script := os.Getenv("LAB_TEST_KILLED"); script != "" {
		t.Log(bootFake(t.Context(), script))
		return
	}
	said, kill := killable(t, "LAB_TEST_KILLED="+fakeQEMU(t, "exec sleep 600"))
	pid, err := strconv.Atoi(said)
	kill()
	if err != nil {
		t.Fatalf("no process id: %q", said)
	}
	gone(t, pid)
}

// The emulator's end with an error is the run's, and so is the end of its context.
func TestBoot(t *testing.T) {
	if err := bootFake(t.Context(), fakeQEMU(t, "exit 3")); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v, want the exit status", err)
	}
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := bootFake(ctx, fakeQEMU(t, "exec sleep 600")); !errors.Is(err, cause) {
		t.Errorf("error %v, want the cause", err)
	}
}
