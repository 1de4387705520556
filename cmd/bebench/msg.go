package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/msgtest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/size"
	"github.com/byteexpress/byteexpress/verbs"
)

// msgFlags are those of the tests of ByteExpress sockets.
type msgFlags struct {
	device deviceFlags
	peer   peerFlags
	output outputFlags

	size     size.Bytes
	all      bool
	duration seconds
	verify   bool
	window   size.Bytes
	fragment size.Bytes
	p        msgtest.Params
}

func newMsg(e *env) *cobra.Command {
	return group("msg", "measure ByteExpress sockets", newMsgTest(e, false), newMsgTest(e, true))
}

func newMsgTest(e *env, latency bool) *cobra.Command {
	f := &msgFlags{p: msgtest.Params{Latency: latency, Seed: 1}}
	use, short, iters, bytes := "bw", "bandwidth of ByteExpress sockets", 5000, size.Bytes(65536)
	if latency {
		use, short, iters, bytes = "lat", "latency of ByteExpress sockets", 1000, 2
	}
	f.size = bytes
	c := &cobra.Command{
		Use: use + " [HOST]", Short: short, Long: short + ".\n" + aboutEnds, Args: atMostOneHost, DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, hosts []string) error { return f.run(e, c, hosts) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.device.add(fs)
	f.peer.add(fs)
	f.add(fs, iters)
	f.output.add(fs)
	return c
}

func (f *msgFlags) add(fs *pflag.FlagSet, iters int) {
	p := &f.p
	fs.VarP(&f.size, "size", "s", "message size, 1 to 2147483647 bytes; K, M, G are powers of 1024")
	fs.BoolVarP(&f.all, "all", "a", false, "all sizes from 2 to 2^23 bytes")
	fs.IntVarP(&p.Iters, "iters", "n", iters, "messages of each socket and size")
	fs.VarP(&f.duration, "duration", "D", "run each size for so many seconds instead of -n messages")
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
	fs.BoolVar(&f.output.gbits, "report_gbits", false, "bandwidth in Gbit/s instead of 2^20 bytes/s")
}

func (f *msgFlags) check(c *cobra.Command, hosts []string) error {
	p := &f.p
	set := c.Flags().Changed
	p.Sizes = sizes(f.size, f.all)
	p.Duration = time.Duration(f.duration)
	p.Node, p.CM = f.device.nodeConfig(), f.device.cm
	p.Node.WindowBytes, p.Node.FragmentBytes = int(f.window), int(f.fragment)
	err := firstOf(f.device.check(), f.peer.check(hosts, &f.device), f.output.check(), inRange("iters", p.Iters, 1, 1<<40),
		inRange("sockets", p.Sockets, 1, 1<<16), inRange("tx-depth", p.Depth, 1, 1<<16))
	if set("window") {
		err = firstOf(err, inRange("window", int(f.window), leastFragment, size.Max))
	}
	if set("fragment") {
		err = firstOf(err, inRange("fragment", int(f.fragment), leastFragment, 1<<30))
	}
	contradict := func(bad bool, what string) {
		if bad && err == nil {
			err = exit.Usagef("%s: leave one of them out", what)
		}
	}
	contradict(f.all && set("size"), "-a and -s contradict each other")
	contradict(p.Duration > 0 && set("iters"), "-D and -n contradict each other")
	contradict(p.Latency && f.output.limits.minBW > 0, "lat measures no bandwidth, which --min-bw needs")
	return err
}

// leastFragment is what be.Config takes for fragment and window.
const leastFragment = 256

// maxAll is the longest message of -a, as in perftest.
const maxAll = 1 << 23

// sizes are those to measure.
func sizes(one size.Bytes, all bool) []int {
	if !all {
		return []int{int(one)}
	}
	var list []int
	for n := 2; n <= maxAll; n *= 2 {
		list = append(list, n)
	}
	return list
}

func (f *msgFlags) run(e *env, c *cobra.Command, hosts []string) error {
	if err := f.check(c, hosts); err != nil {
		return err
	}
	p := &f.p
	p.Verify = f.verify
	t := pairTest{
		device: &f.device, peer: &f.peer, output: &f.output, head: f.head,
		name: "msg", sizes: p.Sizes, latency: p.Latency, verify: &p.Verify, agreed: p.Agreed,
		end: func(ctx context.Context, conn *control.Conn, dev verbs.Device, client bool, sink report.Sink) error {
			return msgtest.Run(e.soft, ctx, conn, dev, p, client, sink)
		},
	}
	return t.run(e, c, hosts)
}

// head writes what is measured, and on what.
func (f *msgFlags) head(o *output, dev *chosen) {
	p, d := &f.p, o.doc.Device
	kind := "BW"
	if p.Latency {
		kind = "Latency"
	}
	_ = report.Rule(o.text)
	o.printf("                    ByteExpress %s test\n", kind)
	o.printf(" Device         : %-16s Provider       : %s\n", d.Name, d.Provider)
	o.printf(" Sockets        : %-16d MTU            : %d[B]\n", p.Sockets, d.MTUBytes)
	o.printf(" GID            : %s\n", f.device.gidLine(d))
	if dev.note != "" {
		o.printf(" %s\n", dev.note)
	}
	if p.Latency {
		o.printf(" Latency is half a round trip, from Post to the message in hand.\n")
	} else {
		o.printf(" %d messages posted a socket; percentiles are from Post until the peer's device has all of the message.\n", p.Depth)
	}
	_ = report.Rule(o.text)
}
