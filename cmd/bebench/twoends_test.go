package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
)

// port gives a TCP port that was free a moment ago, and is none that a system gives to
// whoever asks for any.
func port(t *testing.T) string {
	t.Helper()
	for {
		p := strconv.Itoa(10000 + rand.IntN(20000))
		ln, err := net.Listen("tcp", ":"+p)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		ln.Close()
		return p
	}
}

// serverProcess starts a server process and waits until it listens. The returned function
// ends it, unless -1 has it end by itself, and gives its exit status and output.
func serverProcess(t *testing.T, p string, args ...string) func() (int, string) {
	t.Helper()
	cmd := process(t, append(args, "-p", p)...)
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(out.String(), "waiting for a client"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) || len(ended) > 0 {
			_ = cmd.Process.Kill()
			t.Fatalf("server does not listen: %s", out.String())
		}
	}
	stopped := false
	stop := func() (int, string) {
		if !stopped {
			stopped = true
			if !slices.Contains(args, "-1") || t.Failed() {
				_ = cmd.Process.Signal(os.Interrupt)
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				_ = cmd.Process.Kill()
				t.Errorf("server does not end: %s", out.String())
				<-ended
			}
		}
		return cmd.ProcessState.ExitCode(), out.String()
	}
	t.Cleanup(func() { stop() })
	return stop
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
	for range 12000 {
		if strings.Contains(out.String(), word) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%q was not said:\n%s", word, out.String())
}

// clientProcess runs a client process.
func clientProcess(t *testing.T, args ...string) result {
	t.Helper()
	var out, errout bytes.Buffer
	cmd := process(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &errout
	err := cmd.Run()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errout.String()}
}

func TestTwoProcessesOverTCP(t *testing.T) {
	p := port(t)
	for _, workload := range []string{"inference", "training"} {
		stop := serverProcess(t, p, "ps", "--transport", "tcp", "--workload", workload, "--rows", "500", "-1")
		// Both names are the one server's, which gets a half of the shards each time.
		r := clientProcess(t, "ps", "--transport", "tcp", "--workload", workload, "--rows", "500", "-n", "50", "-p", p, "127.0.0.1")
		r.want(t, exit.Done, "on other hosts", "verified bit by bit", "fetch tcp")
		if code, out := stop(); code != exit.Done || !strings.Contains(out, ": done") {
			t.Errorf("server: exit status %d\n%s", code, out)
		}
	}
}

func TestShardsOfTwoHosts(t *testing.T) {
	p := port(t)
	serverProcess(t, p, "ps", "--transport", "tcp", "--rows", "500")
	r := clientProcess(t, "ps", "--transport", "tcp", "--rows", "500", "-n", "50", "-p", p, "127.0.0.1", "127.0.0.1")
	r.want(t, exit.Done, "verified bit by bit")
}

func TestReplicasOfTwoHosts(t *testing.T) {
	p := port(t)
	serverProcess(t, p, "ps", "--transport", "tcp", "--rows", "500", "--replicas", "2", "--workload", "training")
	r := clientProcess(t, "ps", "--transport", "tcp", "--rows", "500", "--replicas", "2", "--workload", "training", "-n", "50", "--outstanding", "600", "-p", p, "127.0.0.1", "localhost")
	r.want(t, exit.Done, "4 shards of 2 replicas on other hosts", "verified bit by bit")
	r = clientProcess(t, "ps", "--transport", "tcp", "--rows", "500", "--replicas", "2", "--workload", "training", "-D", "1", "--rebalance-after", "0.3", "--rebalance-shards", "3", "--outstanding", "4", "-p", p, "127.0.0.1", "localhost")
	r.want(t, exit.Done, "during", "and 0 requests failed", "verified bit by bit")
}

func TestMismatchedOptionsAreRefused(t *testing.T) {
	p := port(t)
	stop := serverProcess(t, p, "ps", "--transport", "tcp", "--dim", "16")
	clientProcess(t, "ps", "--transport", "tcp", "--dim", "32", "-p", p, "127.0.0.1").want(t, exit.Failed, `--dim: server has "16", client has "32"`)
	clientProcess(t, "send", "bw", "-d", "sim:", "-p", p, "127.0.0.1").want(t, exit.Usage, "simulator")
	// The server goes on.
	clientProcess(t, "ps", "--transport", "tcp", "--dim", "16", "--rows", "100", "-n", "10", "-p", p, "127.0.0.1").want(t, exit.Failed, "--rows")
	code, out := stop()
	if code != exit.Done || strings.Count(out, "refused") != 2 {
		t.Errorf("server: exit status %d\n%s", code, out)
	}
}

func TestPortTaken(t *testing.T) {
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, p, _ := net.SplitHostPort(ln.Addr().String())
	bebench(context.Background(), "ps", "--transport", "tcp", "-p", p).want(t, exit.Failed, "port", p, "-p")
}

func TestNoServer(t *testing.T) {
	bebench(context.Background(), "ps", "--transport", "tcp", "-p", port(t), "127.0.0.1").want(t, exit.Failed, "step connect", "is the server running there")
}

func TestServerThatHangs(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, p, _ := net.SplitHostPort(ln.Addr().String())
	bebench(context.Background(), "ps", "--transport", "tcp", "--timeout", "1s", "-p", p, "127.0.0.1").want(t, exit.Failed, "step hello", "1s")
}

func TestServerOfAnotherVersion(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		body := `{"step":"hello","body":{"protocol":"bebench","version":99,"command":"ps"}}`
		fmt.Fprintf(c, "\x00\x00\x00%c%s", len(body), body)
		_, _ = c.Read(make([]byte, 4096))
		_, _ = c.Read(make([]byte, 4096))
	}()
	_, p, _ := net.SplitHostPort(ln.Addr().String())
	bebench(context.Background(), "ps", "--transport", "tcp", "-p", p, "127.0.0.1").want(t, exit.Failed, "server has 99, client has 1")
}

func TestServerEndsAtAnInterrupt(t *testing.T) {
	stop := serverProcess(t, port(t), "ps", "--transport", "tcp")
	if code, out := stop(); code != exit.Done {
		t.Errorf("exit status %d\n%s", code, out)
	}
}

func TestClientInterruptedByASignal(t *testing.T) {
	cmd := process(t, "write", "lat", "-d", "sim:", "-D", "60")
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(out.String(), "Latency test") && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exit.Failed || !strings.Contains(out.String(), "partial") {
		t.Errorf("exit status %d\n%s", code, out.String())
	}
}
