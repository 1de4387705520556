package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/perftest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/verbtest"
	"github.com/byteexpress/byteexpress/verbs"
)

// verbsFlags are those of the tests of verbs; letters and meanings are perftest's.
type verbsFlags struct {
	pairFlags
	program string // at the other end: "bebench" or "perftest"
	p       verbtest.Params
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
	return f.command(what, latency, f.add, func(c *cobra.Command, hosts []string) error { return f.run(e, c, hosts) })
}

func (f *verbsFlags) add(fs *pflag.FlagSet, iters int) {
	p := &f.p
	if p.Op == verbtest.Atomic {
		f.size = 8
	} else {
		f.addSizes(fs)
	}
	f.addLength(fs, &p.Iters, iters, "queue pair")
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
	f.addUnit(fs)
}

// check refuses contradictions, and fills the parameters in.
func (f *verbsFlags) check(c *cobra.Command, hosts []string) error {
	p := &f.p
	set := c.Flags().Changed
	p.Sizes = f.sizes()
	p.Duration = time.Duration(f.duration)
	p.Port, p.GIDIndex, p.MTUBytes = f.device.port, f.device.gid, f.device.mtu
	p.AckTimeout, p.ServiceLevel, p.TrafficClass = uint8(f.device.ack), uint8(f.device.sl), uint8(f.device.tclass)
	p.RetryCount, p.RNRTimer, p.HopLimit = uint8(f.device.retry), uint8(f.device.rnr), uint8(f.device.hops)
	p.FlowLabel, p.CM = uint32(f.device.label), f.device.cm
	err := firstOf(f.pairFlags.check(c, hosts, p.Iters, p.Latency),
		inRange("tx-depth", p.TxDepth, 1, 1<<20), inRange("rx-depth", p.RxDepth, 1, 1<<20),
		inRange("cq-mod", p.CQMod, 1, 1<<20), inRange("inline_size", p.Inline, 0, 1<<16), inRange("qp", p.QPs, 1, 1<<16),
		inRange("threads", p.Threads, 1, 1024), inRange("post_list", p.PostList, 1, 1<<20))
	readOrAtomic := p.Op == verbtest.Read || p.Op == verbtest.Atomic
	if readOrAtomic {
		err = firstOf(err, inRange("outs", p.Outs, 1, 255))
	}
	switch {
	case err != nil:
	case p.PostList > p.TxDepth:
		err = exit.Usagef("-l %d is more than -t %d: a doorbell cannot post more than may be outstanding: lower -l or raise -t", p.PostList, p.TxDepth)
	case set("cq-mod") && p.CQMod > p.TxDepth:
		err = exit.Usagef("-Q %d is more than -t %d: no request that is outstanding would be signaled: lower -Q or raise -t", p.CQMod, p.TxDepth)
	}
	err = firstOf(err,
		contradict(p.Inline > 0 && readOrAtomic, "-I and "+p.Op.String()+": only SEND and WRITE can be inline"),
		contradict(p.Latency && p.Op == verbtest.Write && p.Events, "-e and write lat: the arrival of a WRITE is seen in memory, there is no event"),
		contradict(p.Threads > p.QPs, "--threads is more than -q: each thread needs a queue pair"),
		contradict(p.NoPeak && (f.output.limits.maxMean > 0 || f.output.limits.maxP99 > 0 || p.Histogram), "-N measures no latency, which --max-mean, --max-p99 and -H need"),
	)
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
		no(p.Duration > 0 && !p.Foreign().Alone(), "-D", "both ends must know the number of messages"),
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
		flags: &f.pairFlags, title: strings.ToUpper(p.Op.String()), setup: f.setup, times: f.times(),
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

// setup writes how the ends are connected.
func (f *verbsFlags) setup(o *output) {
	p := &f.p
	o.printf(" Number of qps  : %-16d Threads        : %d\n", p.QPs, p.Threads)
	o.printf(" Connection type: %-16s MTU            : %d[B]\n", "RC", o.doc.Device.MTUBytes)
	o.printf(" TX depth       : %-16d RX depth       : %d\n", p.TxDepth, p.RxDepth)
}

// times says what the latencies are.
func (f *verbsFlags) times() string {
	p := &f.p
	switch {
	case p.Latency && p.Op != verbtest.Read && p.Op != verbtest.Atomic:
		return "Latency is half a round trip."
	case p.Latency:
		return "Latency is from posting the request to its completion."
	}
	return fmt.Sprintf("Percentiles are from posting a signaled request (one in %d) to its completion.", p.CQMod)
}
