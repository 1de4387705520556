package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/internal/testdev"
)

// deviceTests are run on a real device, in one process and in two. They are short:
// the device may be an emulated one.
var deviceTests = []string{
	"send bw -n 60 -s 4K",
	"send lat -n 60",
	"send bw -n 40 -q 3 -b -l 4 -e -s 512",
	"write bw -n 60 -s 64K",
	"write lat -n 60",
	"write bw -n 40 -I 32 -s 32",
	"write-imm bw -n 40 -s 4K",
	"write-imm lat -n 40 -e",
	"read bw -n 40 -s 4K",
	"read lat -n 40",
	"atomic bw -n 40",
	"atomic lat -n 40",
	"msg bw -n 40 -s 64K",
	"msg bw -n 40 -s 100 --sockets 3 -b",
	"msg lat -n 40",
	"ps -n 20 --rows 200 --dim 32 --max-size 64K",
	"ps -n 20 --rows 200 --dim 32 --workload training",
}

// kernelDevice is the device, if it is one of the kernel's: a simulated one is not
// listed, and is of its process alone.
func kernelDevice(t *testing.T) string {
	t.Helper()
	name := testdev.Name(t)
	if strings.HasPrefix(name, "sim:") {
		t.Skipf("%s is a device of one process", name)
	}
	return name
}

func TestDeviceIsListed(t *testing.T) {
	name := kernelDevice(t)
	bebench(context.Background(), "devices", "--why").want(t, exit.Done, name+"\n", "ACTIVE", "RoCE v2", "rank 1")
	bebench(context.Background(), "devices", "--json", "-").want(t, exit.Done, `"name": "`+name+`"`)
	bebench(context.Background(), "send", "lat", "-d", "no-such-device").want(t, exit.Failed, name)
}

func TestDeviceInOneProcess(t *testing.T) {
	name := testdev.Name(t)
	for _, args := range deviceTests {
		t.Run(args, func(t *testing.T) {
			r := bebench(context.Background(), append(strings.Fields(args), verified(args, "-d", name, "--local")...)...)
			r.want(t, exit.Done, name, " yes")
		})
	}
}

func TestDeviceInTwoProcesses(t *testing.T) {
	name := kernelDevice(t)
	p := port(t)
	for _, args := range deviceTests {
		t.Run(args, func(t *testing.T) {
			all := append(strings.Fields(args), verified(args, "-d", name)...)
			stop := serverProcess(t, p, append(all, "-1")...)
			r := clientProcess(t, append(all, "-p", p, "127.0.0.1")...)
			r.want(t, exit.Done, " yes")
			if code, out := stop(); code != exit.Done {
				t.Errorf("server: exit status %d\n%s", code, out)
			}
		})
	}
}

// TestDeviceServerSurvives has one server that sees a client with other options, a
// client that leaves, and then two good ones at once.
func TestDeviceServerSurvives(t *testing.T) {
	name := kernelDevice(t)
	p := port(t)
	args := []string{"send", "lat", "-d", name, "-n", "50", "-s", "64"}
	stop := serverProcess(t, p, args...)
	clientProcess(t, "send", "lat", "-d", name, "-n", "50", "-s", "128", "-p", p, "127.0.0.1").want(t, exit.Failed, `--size: server has "64", client has "128"`)
	bad := process(t, "send", "lat", "-d", name, "-D", "60", "-s", "64", "-p", p, "127.0.0.1")
	if err := bad.Start(); err != nil {
		t.Fatal(err)
	}
	_ = bad.Process.Kill()
	_ = bad.Wait()
	results := make(chan result, 2)
	for range cap(results) {
		go func() { results <- clientProcess(t, append(args, "-p", p, "127.0.0.1")...) }()
	}
	for range cap(results) {
		r := <-results
		r.want(t, exit.Done, "t_avg[usec]")
	}
	if code, out := stop(); code != exit.Done {
		t.Errorf("server: exit status %d\n%s", code, out)
	}
}

// TestDeviceLeavesNothingBehind counts descriptors over runs in this process.
func TestDeviceLeavesNothingBehind(t *testing.T) {
	name := testdev.Name(t)
	run := func() {
		bebench(context.Background(), "send", "bw", "-d", name, "--local", "-n", "20", "-s", "64").want(t, exit.Done)
		bebench(context.Background(), "msg", "lat", "-d", name, "--local", "-n", "20").want(t, exit.Done)
	}
	run()
	before := descriptors(t)
	run()
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	e, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("this system does not list descriptors")
	}
	return len(e)
}

// verified adds --verify where it is not the default.
func verified(args string, more ...string) []string {
	if !strings.HasPrefix(args, "ps") {
		more = append(more, "--verify")
	}
	return more
}
