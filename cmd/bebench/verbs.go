package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/perftest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/size"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/verbtest"
	"github.com/byteexpress/byteexpress/verbs"
)

// verbsFlags are those of the tests of verbs; letters and meanings are perftest's.
type verbsFlags struct {
	device deviceFlags
	peer   peerFlags
	output outputFlags

	size     size.Bytes
	all      bool
	duration seconds
	verify   bool
	program  string // at the other end: "bebench" or "perftest"
	p        verbtest.Params
}

func newVerbs(e *env, op verbtest.Op) *cobra.Command {
	what := map[verbtest.Op]string{
		verbtest.Send: "SEND", verbtest.Write: "RDMA WRITE", verbtest.WriteImm: "RDMA WRITE with immediate", verbtest.Read: "RDMA READ",
		verbtest.Atomic: "atomic fetch-and-add",
	}[op]
	return group(op.String(), "measure "+what, newVerbsTest(e, op, false, what), newVerbsTest(e, op, true, what))
}

func newVerbsTest(e *env, op verbtest.Op, latency bool, what string) *cobra.Command {
	f := &verbsFlags{p: verbtest.Params{Op: op, Latency: latency, Seed: 1}}
	use, short, iters, bytes := "bw", "bandwidth of "+what, 5000, size.Bytes(65536)
	if latency {
		use, short, iters, bytes = "lat", "latency of "+what, 1000, 2
	}
	if op == verbtest.Atomic {
		bytes = 8
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

func (f *verbsFlags) add(fs *pflag.FlagSet, iters int) {
	p := &f.p
	if p.Op != verbtest.Atomic {
		fs.VarP(&f.size, "size", "s", "message size, 1 to 2147483647 bytes; K, M, G are powers of 1024")
		fs.BoolVarP(&f.all, "all", "a", false, "all sizes from 2 to 2^23 bytes")
	}
	fs.IntVarP(&p.Iters, "iters", "n", iters, "messages of each queue pair and size")
	fs.VarP(&f.duration, "duration", "D", "run each size for so many seconds instead of -n messages")
	fs.IntVarP(&p.TxDepth, "tx-depth", "t", 128, "requests outstanding on a queue pair")
	fs.IntVarP(&p.RxDepth, "rx-depth", "r", 512, "receives posted on a queue pair")
	fs.IntVarP(&p.CQMod, "cq-mod", "Q", 16, "one request in so many is signaled")
	fs.IntVarP(&p.Inline, "inline_size", "I", 0, "send messages up to so many bytes inline")
	if p.Op == verbtest.Read || p.Op == verbtest.Atomic {
		fs.IntVarP(&p.Outs, "outs", "o", 16, "operations outstanding at the device")
	}
	fs.BoolVarP(&p.Events, "events", "e", false, "sleep until a completion comes instead of polling")
	fs.BoolVarP(&p.Histogram, "report-histogram", "H", false, "report the latency histogram")
	fs.StringVar(&f.program, "peer", "bebench", "`program` at the other end: bebench, or perftest for its ib_"+use(p.Op, p.Latency))
	fs.BoolVar(&f.verify, "verify", false, "compare the bytes at the receiver (default true on sim:)")
	p.QPs, p.Threads, p.PostList = 1, 1, 1
	if p.Latency {
		return
	}
	fs.IntVarP(&p.QPs, "qp", "q", 1, "queue pairs in each direction")
	fs.IntVar(&p.Threads, "threads", 1, "threads that share the queue pairs, in each direction")
	fs.IntVarP(&p.PostList, "post_list", "l", 1, "requests a doorbell")
	fs.BoolVarP(&p.Bidirectional, "bidirectional", "b", false, "measure both directions at once")
	fs.BoolVarP(&p.NoPeak, "noPeak", "N", false, "read the clock less often: neither peak bandwidth nor percentiles")
	fs.BoolVar(&f.output.gbits, "report_gbits", false, "bandwidth in Gbit/s instead of 2^20 bytes/s")
}

// check refuses contradictions, and fills the parameters in.
func (f *verbsFlags) check(c *cobra.Command, hosts []string) error {
	p := &f.p
	set := c.Flags().Changed
	p.Sizes = sizes(f.size, f.all)
	p.Duration = time.Duration(f.duration)
	p.Port, p.GIDIndex, p.MTUBytes = f.device.port, f.device.gid, f.device.mtu
	p.AckTimeout, p.ServiceLevel, p.TrafficClass = uint8(f.device.ack), uint8(f.device.sl), uint8(f.device.tclass)
	p.RetryCount, p.RNRTimer, p.HopLimit = uint8(f.device.retry), uint8(f.device.rnr), uint8(f.device.hops)
	p.FlowLabel, p.CM = uint32(f.device.label), f.device.cm
	err := firstOf(f.device.check(), f.peer.check(hosts, &f.device), f.output.check(),
		inRange("iters", p.Iters, 1, 1<<40), inRange("tx-depth", p.TxDepth, 1, 1<<20), inRange("rx-depth", p.RxDepth, 1, 1<<20),
		inRange("cq-mod", p.CQMod, 1, 1<<20), inRange("inline_size", p.Inline, 0, 1<<16), inRange("qp", p.QPs, 1, 1<<16),
		inRange("threads", p.Threads, 1, 1024), inRange("post_list", p.PostList, 1, 1<<20))
	if p.Op == verbtest.Read || p.Op == verbtest.Atomic {
		err = firstOf(err, inRange("outs", p.Outs, 1, 255))
	}
	contradict := func(bad bool, what string) {
		if bad && err == nil {
			err = exit.Usagef("%s: leave one of them out", what)
		}
	}
	switch {
	case err != nil:
	case p.PostList > p.TxDepth:
		err = exit.Usagef("-l %d is more than -t %d: a doorbell cannot post more than may be outstanding: lower -l or raise -t", p.PostList, p.TxDepth)
	case set("cq-mod") && p.CQMod > p.TxDepth:
		err = exit.Usagef("-Q %d is more than -t %d: no request that is outstanding would be signaled: lower -Q or raise -t", p.CQMod, p.TxDepth)
	}
	contradict(f.all && set("size"), "-a and -s contradict each other")
	contradict(p.Duration > 0 && set("iters"), "-D and -n contradict each other")
	contradict(p.Inline > 0 && (p.Op == verbtest.Read || p.Op == verbtest.Atomic), "-I and "+p.Op.String()+": only SEND and WRITE can be inline")
	contradict(p.Latency && p.Op == verbtest.Write && p.Events, "-e and write lat: the arrival of a WRITE is seen in memory, there is no event")
	contradict(p.Threads > p.QPs, "--threads is more than -q: each thread needs a queue pair")
	contradict(p.NoPeak && (f.output.limits.maxMean > 0 || f.output.limits.maxP99 > 0 || p.Histogram), "-N measures no latency, which --max-mean, --max-p99 and -H need")
	contradict(p.Latency && f.output.limits.minBW > 0, "lat measures no bandwidth, which --min-bw needs")
	if f.program != "bebench" && err == nil {
		err = f.checkForeign(set)
	}
	return err
}

// checkForeign refuses what cannot be done with perftest at the other end, and takes
// its defaults.
func (f *verbsFlags) checkForeign(set func(flag string) bool) error {
	p := &f.p
	no := func(bad bool, flag, why string) error {
		if !bad {
			return nil
		}
		return exit.Usagef("--peer perftest and %s: %s: leave one of them out", flag, why)
	}
	onlyUs := p.Op != verbtest.Send && !(p.Latency && p.Op == verbtest.Write)
	if f.program != "perftest" {
		return exit.Usagef("--peer %q: want bebench or perftest", f.program)
	}
	if !set("iters") {
		p.Iters = 1000
		if p.Op == verbtest.Write && !p.Latency {
			p.Iters = 5000
		}
	}
	return firstOf(
		no(p.Op == verbtest.WriteImm, "write-imm", "perftest has no such test in all its versions"),
		no(p.CM, "-R", "addresses are exchanged over TCP with perftest"),
		no(f.verify, "--verify", "perftest sends no bytes that could be checked"),
		no(p.Bidirectional, "-b", "in both directions perftest uses each queue pair for both, which we do not"),
		no(p.Duration > 0 && !onlyUs, "-D", "both ends must know the number of messages"),
	)
}

// use is the end of the name of perftest's program.
func use(op verbtest.Op, latency bool) string {
	if latency {
		return op.String() + "_lat"
	}
	return op.String() + "_bw"
}

func (f *verbsFlags) run(e *env, c *cobra.Command, hosts []string) error {
	if err := f.check(c, hosts); err != nil {
		return err
	}
	p := &f.p
	p.Verify = f.verify
	t := pairTest{
		device: &f.device, peer: &f.peer, output: &f.output, head: f.head,
		name: p.Op.String(), sizes: p.Sizes, latency: p.Latency, verify: &p.Verify, agreed: p.Agreed,
		end: func(ctx context.Context, conn *control.Conn, dev verbs.Device, client bool, sink report.Sink) error {
			return verbtest.Run(e.soft, ctx, conn, dev, p, client, sink)
		},
	}
	if f.program == "perftest" {
		t.foreign = func(ctx context.Context, conn *perftest.Conn, dev verbs.Device, sink report.Sink) error {
			return verbtest.RunPerftest(e.soft, ctx, conn, dev, p, sink)
		}
	}
	return t.run(e, c, hosts)
}

// head writes what is measured, and on what.
func (f *verbsFlags) head(o *output, dev *chosen) {
	p, d := &f.p, o.doc.Device
	_ = report.Rule(o.text)
	kind := "BW"
	if p.Latency {
		kind = "Latency"
	}
	o.printf("                    %s %s test\n", strings.ToUpper(p.Op.String()), kind)
	o.printf(" Device         : %-16s Provider       : %s\n", d.Name, d.Provider)
	o.printf(" Number of qps  : %-16d Threads        : %d\n", p.QPs, p.Threads)
	o.printf(" Connection type: %-16s MTU            : %d[B]\n", "RC", d.MTUBytes)
	o.printf(" TX depth       : %-16d RX depth       : %d\n", p.TxDepth, p.RxDepth)
	o.printf(" GID            : %s\n", f.device.gidLine(d))
	if dev.note != "" {
		o.printf(" %s\n", dev.note)
	}
	switch {
	case p.Latency && p.Op != verbtest.Read && p.Op != verbtest.Atomic:
		o.printf(" Latency is half a round trip.\n")
	case p.Latency:
		o.printf(" Latency is from posting the request to its completion.\n")
	default:
		o.printf(" Percentiles are from posting a signaled request (one in %d) to its completion.\n", p.CQMod)
	}
	_ = report.Rule(o.text)
}
