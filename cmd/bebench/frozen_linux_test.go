package main

import (
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
