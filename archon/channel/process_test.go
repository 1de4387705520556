package channel_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/verbs"
)

// processEnv makes the test binary a server: its name, the address of TCP, and, if it is
// to serve over RDMA, the device and the address of that, separated by spaces.
const processEnv = "CHANNEL_TEST_SERVER"

// serveProcess is the server. It ends when its standard input does, so that it does not
// outlive the test.
func serveProcess() {
	words := strings.Fields(os.Getenv(processEnv))
	s := archon.NewServer(archon.ServerConfig{})
	s.HandleInline(who, func(call *archon.ServerCall) error {
		out, err := call.Alloc(len(words[0]))
		copy(out, words[0])
		return err
	})
	s.HandleInline(echo, func(call *archon.ServerCall) error {
		out, err := call.Alloc(len(call.Payload()))
		copy(out, call.Payload())
		return err
	})
	listen := func(t archon.Transport, addr string) {
		l, err := t.Listen(addr)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(l.Addr())
		go s.Serve(context.Background(), l)
	}
	listen(archon.TCP{}, words[1])
	if len(words) > 2 {
		listen(channel.NewDevice(openNamed(words[2]), be.Config{}), words[3])
	}
	io.Copy(io.Discard, os.Stdin)
}

// openNamed opens a device by its name.
func openNamed(name string) func() (verbs.Context, error) {
	return func() (verbs.Context, error) {
		dev, err := provider.Open(name)
		if err != nil {
			return nil, err
		}
		return dev.Open()
	}
}

// process is a server in a process of its own.
type process struct {
	t        testing.TB
	endpoint channel.Endpoint
	device   string // of RDMA; empty: none
	cmd      *exec.Cmd
	stdin    io.WriteCloser
}

// startProcess starts a server, over RDMA too if there is a device.
func startProcess(t testing.TB, name, device string) *process {
	p := &process{t: t, device: device, endpoint: channel.Endpoint{Name: name, TCP: "127.0.0.1:0"}}
	if device != "" {
		p.endpoint.RDMA = "127.0.0.1:0"
	}
	p.start()
	t.Cleanup(p.kill)
	return p
}

// start starts the process, at the addresses that it had before if there were some.
func (p *process) start() {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(exe)
	env := p.endpoint.Name + " " + p.endpoint.TCP
	if p.device != "" {
		env += " " + p.device + " " + p.endpoint.RDMA
	}
	p.cmd.Env = append(os.Environ(), processEnv+"="+env)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	line := func() string {
		if !lines.Scan() {
			p.t.Fatalf("the server %s says nothing: %v", p.endpoint.Name, p.cmd.Wait())
		}
		return lines.Text()
	}
	p.endpoint.TCP = line()
	if p.device != "" {
		p.endpoint.RDMA = line()
	}
}

// kill ends the process without a word.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Kill()
	p.cmd.Wait()
	p.stdin.Close()
	p.cmd = nil
}
