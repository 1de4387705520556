package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
)

// TestServerFreezesUnderWorkers stops the server's process, which keeps its
// connections open: the client gives up by its own time limit.
func TestServerFreezesUnderWorkers(t *testing.T) {
	p := port(t)
	server := process(t, "ps", "--transport", "tcp", "--rows", "500", "-p", p)
	var said, out lockedBuffer
	server.Stdout, server.Stderr = &said, &said
	client := process(t, "ps", "--transport", "tcp", "--rows", "500", "--timeout", "2s", "-D", "600", "-p", p, "127.0.0.1")
	client.Stdout, client.Stderr = &out, &out
	startWhen(t, server, &said, "waiting for a client")
	startWhen(t, client, &out, "on other hosts")
	time.Sleep(300 * time.Millisecond) // mostly until requests are under way
	if err := server.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(time.Minute, func() { _ = client.Process.Kill() })
	defer hung.Stop()
	_ = client.Wait()
	if code := client.ProcessState.ExitCode(); code != exit.Failed || !strings.Contains(out.String(), "limit 2s (--timeout)") {
		t.Errorf("exit status %d, want %d and a word of the limit\n%s", code, exit.Failed, out.String())
	}
}

// startWhen starts a process and waits until it says a word. It is killed when the
// test ends.
func startWhen(t *testing.T, cmd *exec.Cmd, out *lockedBuffer, word string) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 4000 {
		if strings.Contains(out.String(), word) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%q was not said:\n%s", word, out.String())
}
