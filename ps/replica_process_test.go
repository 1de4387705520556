//go:build unix

package ps_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/ps"
)

// replicaProcess is a replica in a process of its own.
type replicaProcess struct {
	t     testing.TB
	env   string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  *bufio.Scanner
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
// while one after the other is killed and restarted, stopped and continued. No call fails,
// and in the end every push is there once.
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
			p.start()
			t.Cleanup(p.kill)
			all[i][j] = p
			list = append(list, channel.Endpoint{Name: fmt.Sprint(i, ".", j), TCP: addr})
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

// pushes is a load of pushes of -1 and fetches.
type pushes struct {
	t      testing.TB
	c      *ps.Client
	end    chan struct{}
	wg     sync.WaitGroup
	calls  atomic.Int64
	pushes atomic.Int64

	mu    sync.Mutex
	times []time.Duration
}

const pushedKeys = 60

func startPushes(t testing.TB, c *ps.Client) *pushes {
	l := &pushes{t: t, c: c, end: make(chan struct{})}
	rng := seededRand(t)
	for range 4 {
		mine := rand.New(rand.NewPCG(rng.Uint64(), 1))
		l.wg.Go(func() { l.run(mine) })
	}
	t.Cleanup(l.stop)
	return l
}

func (l *pushes) run(rng *rand.Rand) {
	const n = 6
	keys, gradients := make([]uint64, n), make([]float32, n*replicaDim)
	for i := range gradients {
		gradients[i] = -1
	}
	for {
		select {
		case <-l.end:
			return
		default:
		}
		for i := range keys {
			keys[i] = rng.Uint64N(pushedKeys)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		began := time.Now()
		if err := l.c.Push(ctx, keys, gradients); err != nil {
			l.t.Errorf("push: %v", err)
		}
		l.pushes.Add(n)
		if f, err := l.c.Fetch(ctx, keys); err != nil {
			l.t.Errorf("fetch: %v", err)
		} else {
			f.Release()
		}
		cancel()
		l.mu.Lock()
		l.times = append(l.times, time.Since(began))
		l.mu.Unlock()
		l.calls.Add(1)
	}
}

func (l *pushes) more(n int64) {
	l.t.Helper()
	for from, end := l.calls.Load(), time.Now().Add(time.Minute); l.calls.Load() < from+n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) || l.t.Failed() {
			l.t.Fatal("the calls do not go on")
		}
	}
}

// take gives the p99 since the last take.
func (l *pushes) take() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.times) == 0 {
		return 0
	}
	slices.Sort(l.times)
	p99 := l.times[len(l.times)*99/100]
	l.times = l.times[:0]
	return p99
}

func (l *pushes) stop() {
	select {
	case <-l.end:
	default:
		close(l.end)
	}
	l.wg.Wait()
}

// sum gives the gradients that the rows got.
func (l *pushes) sum() (sum float64) {
	f, err := l.c.Fetch(context.Background(), keyRange(pushedKeys))
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Release()
	for i := range pushedKeys {
		for _, v := range f.Row(i) {
			if v != f.Row(i)[0] {
				l.t.Errorf("row %d is %v", i, f.Row(i))
			}
		}
		sum += float64(f.Row(i)[0])
	}
	return sum
}
