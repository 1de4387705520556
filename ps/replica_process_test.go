//go:build unix

package ps_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/ps"
)

// replicaProcess is a replica in a process of its own.
type replicaProcess struct {
	t     testing.TB
	env   string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  *bufio.Scanner
	hole  *hole // between clients and it
}

func (p *replicaProcess) start() {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(exe)
	p.cmd.Env = append(os.Environ(), replicaEnv+"="+p.env)
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
	p.said = bufio.NewScanner(out)
}

// wait waits until the replica serves.
func (p *replicaProcess) wait() {
	p.t.Helper()
	if !p.said.Scan() {
		p.t.Fatalf("the replica %q says nothing: %v", p.env, p.cmd.Wait())
	}
}

func (p *replicaProcess) kill() {
	if p.cmd != nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		p.stdin.Close()
		p.cmd = nil
	}
}

func (p *replicaProcess) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// TestReplicaProcesses: 3 shards of 2 replicas, each in a process of its own, under load
// while one after the other is killed and restarted, stopped and continued, or loses what
// clients send. No call fails, and in the end every push is there once.
func TestReplicaProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	const shards, replicas = 3, 2
	var all [shards][replicas]*replicaProcess
	channels := make([]*channel.Channel, shards)
	for i := range all {
		var peers [replicas]string
		for j := range peers {
			peers[j] = freeAddr(t)
		}
		var list []channel.Endpoint
		for j := range all[i] {
			addr := freeAddr(t)
			p := &replicaProcess{t: t, env: fmt.Sprintln(i, shards, j, addr, strings.Join(peers[:], " "))}
			p.hole = newHole(t, addr)
			p.start()
			t.Cleanup(p.kill)
			all[i][j] = p
			list = append(list, channel.Endpoint{Name: fmt.Sprint(i, ".", j), TCP: p.hole.addr})
		}
		var err error
		if channels[i], err = channel.New(channel.Config{Service: "ps", Resolver: channel.Static(list...),
			Recovery: channel.Recovery{PingInterval: 200 * time.Millisecond, PingTimeout: time.Second, RedialMax: 200 * time.Millisecond}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range all {
		for _, p := range all[i] {
			p.wait()
		}
	}
	c, err := ps.NewChannelClient(replicaDim, channels)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := startPushes(t, c)
	l.more(300)
	for round, f := range []struct {
		desc         string
		strike, heal func(p *replicaProcess)
	}{
		{"killed and restarted", (*replicaProcess).kill, func(p *replicaProcess) { p.start(); p.wait() }},
		{"restarted at once", func(p *replicaProcess) { p.kill(); p.start() }, (*replicaProcess).wait},
		{"black-holed", func(p *replicaProcess) { p.hole.lose.Store(true) }, func(p *replicaProcess) { p.hole.lose.Store(false) }},
		{"stopped and continued", func(p *replicaProcess) { p.signal(syscall.SIGSTOP) }, func(p *replicaProcess) { p.signal(syscall.SIGCONT) }},
	} {
		for j := range replicas {
			p := all[(round+j)%shards][j]
			l.take()
			l.more(200)
			steady := l.take()
			f.strike(p)
			time.Sleep(3 * replicaLease) // the others go on without it
			l.more(200)
			during := l.take()
			f.heal(p)
			eventually(t, f.desc+": all replicas are reached again", func() bool {
				for _, ch := range channels {
					for _, r := range ch.Stats().Replicas {
						if r.Path != core.TCP {
							return false
						}
					}
				}
				return true
			})
			l.more(200)
			t.Logf("replica %d %s: p99 %v before, %v during the fault", j, f.desc, steady, during)
		}
	}
	time.Sleep(3 * replicaLease)
	l.stop()
	for range 20 { // of any replica
		if got, want := l.sum(), float64(l.pushes.Load()); got != want {
			t.Fatalf("the rows hold %v pushes of %v", got, want)
		}
	}
}
