package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/msgtest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/size"
	"github.com/byteexpress/byteexpress/verbs"
)

// msgFlags are those of the tests of ByteExpress sockets.
type msgFlags struct {
	pairFlags
	window   size.Bytes
	fragment size.Bytes
	p        msgtest.Params
}

func newMsg(e *env) *cobra.Command {
	return group("msg", "measure ByteExpress sockets", newMsgTest(e, false), newMsgTest(e, true))
}

func newMsgTest(e *env, latency bool) *cobra.Command {
	f := &msgFlags{p: msgtest.Params{Latency: latency, Seed: 1}}
	return f.command("ByteExpress sockets", latency, f.add, func(c *cobra.Command, hosts []string) error { return f.run(e, c, hosts) })
}

func (f *msgFlags) add(fs *pflag.FlagSet, iters int) {
	p := &f.p
	f.addSizes(fs)
	f.addLength(fs, &p.Iters, iters, "socket")
	fs.IntVar(&p.Sockets, "sockets", 1, "sockets, all on one engine")
	fs.Var(&f.window, "window", "send window of the engine in bytes (default 256 KiB)")
	fs.Var(&f.fragment, "fragment", "bytes of a WRITE (default 64 KiB)")
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
	p.Node.WindowBytes, p.Node.FragmentBytes = int(f.window), int(f.fragment)
	err := firstOf(f.pairFlags.check(c, hosts, p.Iters, p.Latency), inRange("sockets", p.Sockets, 1, 1<<16), inRange("tx-depth", p.Depth, 1, 1<<16))
	if set("window") {
		err = firstOf(err, inRange("window", int(f.window), leastFragment, size.Max))
	}
	if set("fragment") {
		err = firstOf(err, inRange("fragment", int(f.fragment), leastFragment, 1<<30))
	}
	return err
}

// leastFragment is what be.Config takes for fragment and window.
const leastFragment = 256

func (f *msgFlags) run(e *env, c *cobra.Command, hosts []string) error {
	if err := f.check(c, hosts); err != nil {
		return err
	}
	p := &f.p
	p.Verify = f.verify
	times := fmt.Sprintf("%d messages posted a socket; percentiles are from Post until the peer's device has all of the message.", p.Depth)
	if p.Latency {
		times = "Latency is half a round trip, from Post to the message in hand."
	}
	t := pairTest{
		flags: &f.pairFlags, title: "ByteExpress", times: times,
		name: "msg", sizes: p.Sizes, latency: p.Latency, verify: &p.Verify, agreed: p.Agreed,
		end: func(ctx context.Context, conn *control.Conn, dev verbs.Device, client bool, sink report.Sink) error {
			return msgtest.Run(e.soft, ctx, conn, dev, p, client, sink)
		},
		setup: func(o *output) {
			o.printf(" Sockets        : %-16d MTU            : %d[B]\n", p.Sockets, o.doc.Device.MTUBytes)
		},
	}
	return t.run(e, c, hosts)
}
