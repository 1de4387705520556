package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/msgtest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/verbs"
)

// msgFlags are those of the tests of ByteExpress sockets.
type msgFlags struct {
	pairFlags
	nodeFlags
	verbose bool
	p       msgtest.Params
}

func newMsg(e *env) *cobra.Command {
	return group("msg", "measure ByteExpress sockets", newMsgTest(e, false), newMsgTest(e, true), newMsgCompare(e))
}

func newMsgTest(e *env, latency bool) *cobra.Command {
	f := &msgFlags{p: msgtest.Params{Latency: latency, Seed: 1}}
	return f.command("ByteExpress sockets", latency, f.add, func(c *cobra.Command, hosts []string) error { return f.run(e, c, hosts) })
}

func (f *msgFlags) add(fs *pflag.FlagSet, iters int) {
	p := &f.p
	f.addSizes(fs)
	f.addLength(fs, &p.Iters, iters, "socket")
	fs.StringVar(&p.Transport, "transport", msgtest.OverBE, "what carries the messages: be, or tcp for a connection a socket and no RDMA")
	fs.IntVar(&p.Warm, "warm-up", usualWarm, "messages of each socket and size before it is measured")
	fs.IntVar(&p.Sockets, "sockets", 1, "sockets, spread over the engines: one for each pair of a worker of either end")
	f.addSockets(fs)
	f.addNode(fs)
	fs.IntVar(&p.Busy, "busy", 0, "goroutines at each end that compute all the time, as an application's may")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "with the counters of the node and of each engine")
	fs.BoolVarP(&p.Histogram, "report-histogram", "H", false, "report the latency histogram")
	fs.BoolVar(&f.verify, "verify", false, "check every message at the receiver (default true on sim:)")
	p.Depth = 2
	if p.Latency {
		return
	}
	fs.IntVarP(&p.Depth, "tx-depth", "t", 16, "messages posted on a socket")
	fs.BoolVarP(&p.Bidirectional, "bidirectional", "b", false, "measure both directions at once")
	f.addUnit(fs)
}

func (f *msgFlags) check(c *cobra.Command, hosts []string) error {
	p := &f.p
	set := c.Flags().Changed
	p.Sizes = f.sizes()
	p.Duration = time.Duration(f.duration)
	p.Node, p.CM = f.device.nodeConfig(), f.device.cm
	err := firstOf(f.pairFlags.check(c, hosts, p.Iters, p.Latency), inRange("sockets", p.Sockets, 1, 1<<16), inRange("tx-depth", p.Depth, 1, 1<<16),
		inRange("warm-up", p.Warm, 0, 1<<20), inRange("busy", p.Busy, 0, 1<<10), f.nodeFlags.check(set))
	if err != nil {
		return err
	}
	f.apply(p)
	switch p.Transport {
	case msgtest.OverBE:
		return nil
	case msgtest.OverTCP:
	default:
		return exit.Usagef("--transport %q: want be or tcp", p.Transport)
	}
	for _, flag := range notTCP {
		if set(flag) {
			return exit.Usagef("--transport tcp and --%s contradict each other, as there is no RDMA in it: leave one of them out", flag)
		}
	}
	return nil
}

// usualWarm is enough for the memory of a test to be registered and mapped.
const usualWarm = 16

// notTCP are flags of RDMA and of ByteExpress.
var notTCP = []string{"ib-dev", "ib-port", "gid-index", "mtu", "rdma_cm", "weights", "unordered", "get", "window", "window-target", "node-window", "fragment",
	"eager", "pack", "send-depth", "recv-depth", "backlog", "srq", "workers", "lock-threads", "pin", "spin"}

func (f *msgFlags) run(e *env, c *cobra.Command, hosts []string) error {
	if err := f.check(c, hosts); err != nil {
		return err
	}
	p := &f.p
	p.Verify = f.verify
	times := fmt.Sprintf("%d messages posted a socket; percentiles are from Post until the peer's device has all of the message.", p.Depth)
	if p.Transport == msgtest.OverTCP {
		times = fmt.Sprintf("%d messages posted a socket; percentiles are from Post until the kernel has all of the message.", p.Depth)
	}
	if p.Latency {
		times = "Latency is half a round trip, from Post to the message in hand."
	}
	t := pairTest{
		flags: &f.pairFlags, title: map[string]string{msgtest.OverBE: "ByteExpress", msgtest.OverTCP: "TCP"}[p.Transport], times: times,
		name: "msg", sizes: p.Sizes, latency: p.Latency, verify: &p.Verify, agreed: p.Agreed,
		end: func(ctx context.Context, conn *control.Conn, dev verbs.Device, client bool, sink report.Sink) error {
			return msgtest.Run(e.soft, ctx, conn, dev, p, client, sink)
		},
		setup: func(o *output) {
			if o.doc.Device == nil {
				o.printf(" Sockets        : %d\n", p.Sockets)
				return
			}
			o.printf(" Sockets        : %-16d MTU            : %d[B]\n", p.Sockets, o.doc.Device.MTUBytes)
			o.printf(" Node           : %s\n", f.line(p))
		},
		noDevice: p.Transport == msgtest.OverTCP,
	}
	if f.verbose {
		t.explain = report.WriteCounters
	}
	return t.run(e, c, hosts)
}
