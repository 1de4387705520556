package channel_test

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// descriptors gives the number of open descriptors.
func descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list) - 1 // that of the directory
}

// takeDescriptors opens files until the process may open few more, and gives what closes
// them.
func takeDescriptors(t testing.TB, few int) (give func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	less := was
	less.Cur = min(uint64(descriptors(t)+64), was.Cur)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &less); err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		files = append(files, f)
	}
	for range few {
		files[len(files)-1].Close()
		files = files[:len(files)-1]
	}
	return func() {
		for _, f := range files {
			f.Close()
		}
		files = nil
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}
}

// TestOutOfDescriptors: a process that may open no more files, or only one to six of them,
// goes on with the connections that it has, over both transports; one that begins to
// connect then says what it lacks, and is there when there are descriptors again. None is
// lost.
func TestOutOfDescriptors(t *testing.T) {
	f := sim.NewFabric(sim.Config{})
	_, openServer := openSim(t, f, "server")
	_, openClient := openSim(t, f, "client")
	v := startServer(t, "a", nil)
	e := channel.Endpoint{Name: "a", TCP: v.tcp, RDMA: v.listen(newDevice(t, openServer), "127.0.0.1:0")}
	both := newChannel(t, channel.Config{RDMA: newDevice(t, openClient), Resolver: channel.Static(e)})
	eventually(t, "calls use RDMA", func() bool { return stats(both, "a").Path == core.RDMA })
	plain := newChannel(t, channel.Config{Resolver: channel.Static(e)})
	loads := []*load{startLoad(t, both, 2), startLoad(t, plain, 2)}
	more := func() {
		for _, l := range loads {
			l.more(t, 20)
		}
	}
	more()
	before := descriptors(t)
	for few := range 7 {
		give := takeDescriptors(t, few)
		_, openThird := openSim(t, f, "third"+string(rune('0'+few)))
		third := channel.NewDevice(openThird, be.Config{})
		late := newChannel(t, channel.Config{RDMA: third, Resolver: channel.Static(e)})
		if few == 0 {
			var err error
			eventually(t, "a call says what is missing", func() bool {
				soon, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				defer cancel()
				_, err = ask(soon, late, echo, "x")
				return err != nil && strings.Contains(err.Error(), syscall.EMFILE.Error())
			})
		}
		more()
		give()
		if got, err := ask(limit(t), late, echo, "y"); err != nil || got != "y" {
			t.Errorf("with descriptors again: %q, %v", got, err)
		}
		eventually(t, "calls use RDMA", func() bool { return stats(late, "a").Path == core.RDMA })
		more()
		late.Close()
		eventually(t, "close the device", func() bool { return third.Close() == nil })
		eventually(t, "no descriptor is lost", func() bool { return descriptors(t) == before })
	}
}
