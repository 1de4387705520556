package channel_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testprocess"
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
	*testprocess.Process
	endpoint channel.Endpoint
	device   string // of RDMA; empty: none
}

// startProcess starts a server, over RDMA too if there is a device.
func startProcess(t testing.TB, name, device string) *process {
	p := &process{Process: testprocess.New(t, processEnv, ""), device: device, endpoint: channel.Endpoint{Name: name, TCP: testprocess.Addr(t)}}
	if device != "" {
		p.endpoint.RDMA = testprocess.Addr(t)
	}
	p.start()
	return p
}

// start starts the process, at the addresses that it had before if there were some.
func (p *process) start() {
	env := p.endpoint.Name + " " + p.endpoint.TCP
	if p.device != "" {
		env += " " + p.device + " " + p.endpoint.RDMA
	}
	p.Set(processEnv, env)
	p.Start()
	p.endpoint.TCP = p.Line()
	if p.device != "" {
		p.endpoint.RDMA = p.Line()
	}
}
