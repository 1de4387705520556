package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/msgtest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/size"
)

// nodeFlags set up the ByteExpress nodes of a test, each end its own, and the kind of
// their sockets. Ranges that be.Config checks are not checked here again.
type nodeFlags struct {
	window     size.Bytes
	target     time.Duration
	nodeWindow size.OrZero
	fragment   size.Bytes
	eager      size.Bytes
	pack       size.OrZero
	sendDepth  int
	recvDepth  int
	backlog    int
	srq        int
	workers    int
	lock       bool
	pin        []int
	spin       time.Duration

	weights   []int
	unordered bool
	get       bool
}

// addNode adds the flags of the node.
func (f *nodeFlags) addNode(fs *pflag.FlagSet) {
	fs.Var(&f.window, "window", "send window of each engine in bytes, at least --fragment (default 256 KiB, or a fragment)")
	fs.DurationVar(&f.target, "window-target", 0, "make the window adaptive, between a fragment and --window: let a request wait so `long`, as 20us, in the network; 0: static")
	fs.Var(&f.nodeWindow, "node-window", "send window in bytes of all engines of the node together, at least --fragment; 0: no bound")
	fs.Var(&f.fragment, "fragment", "bytes of a WRITE (default 64 KiB)")
	fs.Var(&f.eager, "eager", "messages up to so many bytes are sent whole (default 8 KiB)")
	f.pack = be.DefaultPackBytes
	fs.Var(&f.pack, "pack", "messages up to so many bytes that are posted one right after another go in one SEND; 0: none do")
	fs.IntVar(&f.sendDepth, "send-depth", be.DefaultSendDepth, "work requests of an engine's chain")
	fs.IntVar(&f.recvDepth, "recv-depth", be.DefaultRecvDepth, "receives that an engine posts: the peer's credits")
	fs.IntVar(&f.backlog, "backlog", be.DefaultBacklog, "messages that a peer may send on a socket ahead of the receiver")
	fs.IntVar(&f.srq, "srq", 0, "let the engines of a worker take receives from one shared queue of so many, --recv-depth (default 8) promised to each, at most half of it; 0: each has its own")
	fs.IntVar(&f.workers, "workers", 1, "goroutines that drive engines, each with a completion queue of its own")
	fs.BoolVar(&f.lock, "lock-threads", false, "give each worker a thread of its own")
	fs.IntSliceVar(&f.pin, "pin", nil, "keep worker i on the i-th of these `CPUs`: 0,1")
	fs.DurationVar(&f.spin, "spin", 0, "how `long`, as 50us, an idle worker looks for work before it sleeps; 0: a few looks")
}

// addSockets adds the flags of the sockets.
func (f *nodeFlags) addSockets(fs *pflag.FlagSet) {
	fs.IntSliceVar(&f.weights, "weights", nil, "`shares` of the sockets in what their engine sends, by turns: 1,2,4")
	fs.BoolVar(&f.unordered, "unordered", false, "sockets without order: messages come as they are whole")
	fs.BoolVar(&f.get, "get", false, "large messages are read by the receiver instead of written by the sender")
}

func (f *nodeFlags) check(set func(string) bool) error {
	for _, w := range f.weights {
		if w < 1 || w > be.MaxWeight {
			return exit.Usagef("--weights %d: must be 1 to %d", w, be.MaxWeight)
		}
	}
	for _, cpu := range f.pin {
		if cpu < 0 || canPin(cpu) != nil {
			return exit.Usagef("--pin %d: there is no such CPU, or this process may not use it (taskset -pc lists those it may)", cpu)
		}
	}
	for flag, n := range f.windows() {
		if n > 0 {
			if err := inRange(flag, n, leastFragment, size.Max); err != nil {
				return err
			}
		}
	}
	err := firstOf(inRange("workers", f.workers, 1, 64), inRange("send-depth", f.sendDepth, 2, 1<<15), inRange("recv-depth", f.recvDepth, 4, 1<<15), inRange("backlog", f.backlog, 1, 1<<20),
		inRange("srq", f.srq, 0, 1<<14), inRange("pack", int(f.pack), 0, core.MaxPackLimit),
		notNegative("spin", f.spin), notNegative("window-target", f.target))
	if f.srq > 0 && !set("recv-depth") {
		f.recvDepth = be.DefaultSharedDepth
	}
	if set("fragment") {
		err = firstOf(err, inRange("fragment", int(f.fragment), leastFragment, 1<<30))
	}
	if set("eager") {
		err = firstOf(err, inRange("eager", int(f.eager), leastFragment, 1<<20))
	}
	return firstOf(err, f.fits(set))
}

// windows are those of the flags in bytes, 0 where there is none.
func (f *nodeFlags) windows() map[string]int {
	return map[string]int{"window": int(f.window), "node-window": int(f.nodeWindow)}
}

// fits checks flags against each other that be.Config does not take together.
func (f *nodeFlags) fits(set func(string) bool) error {
	fragment := be.DefaultFragmentBytes
	if set("fragment") {
		fragment = int(f.fragment)
	}
	for flag, n := range f.windows() {
		if n > 0 && n < fragment {
			return exit.Usagef("--%s %d: must be at least --fragment, %d", flag, n, fragment)
		}
	}
	if f.srq > 0 && f.srq < 2*f.recvDepth {
		return exit.Usagef("--srq %d: must be at least twice --recv-depth, %d, or 0 for none", f.srq, f.recvDepth)
	}
	return nil
}

func notNegative(flag string, d time.Duration) error {
	if d < 0 {
		return exit.Usagef("--%s %v: must not be negative", flag, d)
	}
	return nil
}

// leastFragment is what be.Config takes for sizes of fragments, windows and eager
// messages.
const leastFragment = 256

// apply puts the flags into the parameters of a test.
func (f *nodeFlags) apply(p *msgtest.Params) {
	n := &p.Node
	n.WindowBytes, n.WindowTarget, n.NodeWindowBytes, n.FragmentBytes = int(f.window), f.target, int(f.nodeWindow), int(f.fragment)
	n.EagerBytes, n.SendDepth, n.RecvDepth, n.Backlog, n.SharedReceives = int(f.eager), f.sendDepth, f.recvDepth, f.backlog, f.srq
	if n.PackBytes = int(f.pack); f.pack == 0 {
		n.PackBytes = -1
	}
	n.Workers, n.LockThreads, n.PinCPUs, n.Spin = f.workers, f.lock, f.pin, f.spin
	p.Weights, p.Unordered, p.Get = f.weights, f.unordered, f.get
}

// line says for people how the node works, where that is not the default.
func (f *nodeFlags) line(p *msgtest.Params) string {
	parts := []string{strconv.Itoa(f.workers) + " workers"}
	if f.workers == 1 {
		parts[0] = "1 worker"
	}
	say := func(on bool, format string, args ...any) {
		if on {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	say(f.lock || len(f.pin) > 0, "locked threads")
	say(len(f.pin) > 0, "on CPUs %v", f.pin)
	say(f.srq > 0, "%d shared receives", f.srq)
	say(f.spin > 0, "spin %v", f.spin)
	say(f.pack == 0, "nothing packed")
	say(f.target > 0, "adaptive window, target %v", f.target)
	say(f.nodeWindow > 0, "node window %d", int(f.nodeWindow))
	say(p.Unordered, "unordered")
	say(p.Get, "get mode")
	say(len(p.Weights) > 0, "weights %v", p.Weights)
	return strings.Join(parts, ", ")
}
