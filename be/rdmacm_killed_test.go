package be_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm/stream"
)

// victimEnv makes the test binary the other process of a test that kills one: it is the
// address to listen on by rdma_cm, or "tcp".
const victimEnv = "BE_TEST_VICTIM"

// A peer's process is killed: the connection manager's line tells, long before a
// keepalive or a retry would.
func TestDeviceRDMACMKilled(t *testing.T) {
	p, addr := newCMPair(t)
	ctx := limit(t)
	cmd, at := victim(t, netip.AddrPortFrom(addr, 0).String())
	s, err := p.nodes[1].Dial(ctx, at, "x")
	if err != nil {
		t.Fatal(err)
	}
	b := alloc(t, p.nodes[1], 100, 1)
	if err := s.Send(ctx, b); err != nil {
		t.Fatal(err)
	}
	p.nodes[1].Free(b)
	if got, err := s.Recv(ctx); err != nil { // it lives
		t.Fatal(err)
	} else {
		p.nodes[1].Free(got)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, err := s.Recv(ctx); !errors.Is(err, be.ErrPeerLost) {
		t.Errorf("receive from a killed process: %v", err)
	}
	s.Close()
	eventually(t, "no engine left", func() bool { return p.nodes[1].Stats().Engines == 0 })
}

// victim starts another process, which listens as told, and echoes.
func victim(t *testing.T, listen string) (cmd *exec.Cmd, addr string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(limit(t), exe, "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), victimEnv+"="+listen)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	text, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("the other process says nothing: %v", err)
	}
	go io.Copy(io.Discard, lines)
	return cmd, strings.TrimSpace(text)
}

// TestVictim is the process that is killed: it echoes until then.
func TestVictim(t *testing.T) {
	addr := os.Getenv(victimEnv)
	if addr == "" {
		return
	}
	dev, err := provider.Open(os.Getenv(testdev.Env))
	if err != nil {
		t.Fatal(err)
	}
	rdma, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	var cfg be.Config
	if addr == "tcp" {
		cfg, addr = deep, "127.0.0.1:0"
	} else if cfg.Bootstrap, err = stream.New(rdma, stream.Config{}); err != nil {
		t.Fatal(err)
	}
	n, err := be.NewNode(rdma, cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := n.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(l.Addr())
	s, err := l.Accept(limit(t))
	if err != nil {
		t.Fatal(err)
	}
	for {
		b, err := s.Recv(limit(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(limit(t), b); err != nil {
			t.Fatal(err)
		}
		n.Free(b)
	}
}
