package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/psjob"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/rpcjob"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/size"
)

// rpcFlags are those of the measurement of calls.
type rpcFlags struct {
	device deviceFlags
	peer   peerFlags
	output outputFlags

	sizes       []string
	outstanding []int
	transport   string
	calls       int
	duration    seconds
	rounds      int
	stream      bool
	window      size.Bytes
	workers     bool
	verify      bool
	lock        bool
	spin        time.Duration
	also        []string
	replicas    int
	kill        seconds

	bytes    []int // sizes, read
	programs []program
}

func newRPC(e *env) *cobra.Command {
	f := &rpcFlags{duration: seconds(500 * time.Millisecond)}
	c := &cobra.Command{
		Use: "rpc [bw|lat] [HOST...]", Short: "measure calls of archon", DisableFlagsInUseLine: true,
		Long: "Calls that are answered with the bytes that they sent, over ByteExpress and over TCP in turn, for each size and number of\n" +
			"callers; with --stream, messages of streams. Each caller waits for its call before it makes the next. A line has the\n" +
			"medians of the rounds, and the medians of the ratios that ByteExpress had to its neighbour in each round.\n" +
			"bw is for 64 callers, lat for one, neither for both.\n" +
			"Several hosts, --replicas or --transport auto: calls by a channel, which chooses a server for each, hedges, repeats, and uses\n" +
			"TCP where RDMA fails; what it did is printed at the end. End one server meanwhile, or with --kill, and see.\n" + aboutEnds,
		RunE: func(c *cobra.Command, args []string) error {
			hosts, err := f.kind(c, args)
			if err != nil {
				return err
			}
			return f.run(e, c, hosts)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.device.add(fs)
	f.peer.add(fs)
	f.add(fs)
	f.output.addFiles(fs)
	fs.StringVar(&f.output.progress, "progress", "auto", "`when` to show progress on standard error: auto (on a terminal), always, never")
	f.output.limits.addRate(fs)
	f.output.limits.add(fs)
	return c
}

func (f *rpcFlags) add(fs *pflag.FlagSet) {
	fs.StringSliceVarP(&f.sizes, "size", "s", []string{"64", "4K", "64K", "1M"}, "payload `sizes` in bytes, at least 8; K, M, G are powers of 1024")
	fs.IntSliceVar(&f.outstanding, "outstanding", []int{1, 64}, "`numbers` of calls outstanding, or of streams")
	fs.StringVar(&f.transport, "transport", "both", "be, tcp, both in turn, or auto: be, and tcp where that fails")
	fs.IntVarP(&f.calls, "iters", "n", 0, "calls of each measurement; 0: by -D")
	fs.VarP(&f.duration, "duration", "D", "how long each measurement takes, in seconds")
	fs.IntVar(&f.rounds, "rounds", 3, "times that each measurement is made")
	fs.BoolVar(&f.stream, "stream", false, "measure messages of streams from the server instead of calls")
	fs.Var(&f.window, "window", "bytes that may wait at the receiver of a stream (default 1M)")
	fs.BoolVar(&f.workers, "on-workers", false, "the server's handler runs on a worker and not where the message came in")
	fs.BoolVar(&f.verify, "verify", false, "compare every byte, and not only length and number of each message")
	fs.BoolVar(&f.lock, "lock-threads", false, "give each worker of a node a thread of its own")
	fs.DurationVar(&f.spin, "spin", 0, "how `long` an idle worker looks for work before it sleeps; 0: a few looks")
	fs.IntVar(&f.replicas, "replicas", 0, "call so many servers in this process by a channel; with hosts, those are the replicas")
	fs.Var(&f.kill, "kill", "end one of the --replicas after so many seconds; none without it")
	fs.StringArrayVar(&f.also, "also", nil, "also measure another `NAME=PROGRAM`: it is run with echo, --size, --outstanding and --seconds, and writes one row as in --json")
}

func (f *rpcFlags) check(c *cobra.Command, hosts []string) error {
	set := c.Flags().Changed
	err := firstOf(f.device.check(), f.peer.check(hosts, &f.device), f.output.check(), inRange("iters", f.calls, 0, 1<<40), inRange("rounds", f.rounds, 1, 1000), notNegative("spin", f.spin),
		contradict(f.calls > 0 && set("duration"), "-D and -n contradict each other"),
		f.device.unused(set, f.transport == "tcp"),
		contradict(f.transport == "tcp" && (f.lock || f.spin > 0), "--lock-threads and --spin are of ByteExpress, and --transport tcp is without it"),
		contradict(set("window") && !f.stream, "--window is of streams, and calls, without --stream, have none"),
		contradict(f.workers && f.stream, "--on-workers is for calls, and --stream measures streams"),
		contradict(f.verify && f.stream, "--verify is for calls, and --stream measures streams"),
		contradict(len(f.also) > 0 && (len(hosts) > 0 || f.stream || f.calls > 0), "--also is for calls by time inside one process, and a host, --stream or -n is not"),
		inRange("replicas", f.replicas, 0, 64),
		contradict(f.replicas > 0 && f.peer.once, "-1 is for a server, and --replicas are all in this process"),
		contradict(f.replicas > 0 && f.device.cm, "-R and --replicas contradict each other, since the ends in one process meet at the loopback address, where no RDMA device is"),
		contradict(f.replicas > 0 && len(hosts) > 0, "--replicas is of servers in this process, and a host is another"),
		contradict(f.byChannel(hosts) && (f.stream || len(f.also) > 0), "--stream and --also are for one server, and a channel to replicas is for calls"),
		contradict(f.device.cm && f.transport != "be", "-R and --transport tcp, both or auto"))
	if err != nil {
		return err
	}
	if f.transport != "be" && f.transport != "tcp" && f.transport != "both" && f.transport != overAuto {
		return exit.Usagef("--transport %q: want be, tcp, both or auto", f.transport)
	}
	if f.window < 0 || f.window > 1<<30 {
		return exit.Usagef("--window %d: must be 1 to %d", f.window, 1<<30)
	}
	for _, s := range f.sizes {
		n, err := size.Parse(s)
		if err != nil {
			return exit.Usagef("--size: %v", err)
		}
		if n < 8 || n > 32<<20 {
			return exit.Usagef("--size %s: must be 8 bytes to 32M", s)
		}
		f.bytes = append(f.bytes, n)
	}
	for _, n := range f.outstanding {
		if err := inRange("outstanding", n, 1, 1<<14); err != nil {
			return err
		}
	}
	if f.kill > 0 && f.replicas < 2 {
		return exit.Usagef("--kill: must be with --replicas 2 or more, or no server is left")
	}
	if total := time.Duration(f.rounds*len(f.bytes)*len(f.outstanding)) * time.Duration(f.duration); f.calls == 0 && time.Duration(f.kill) >= total && f.kill > 0 {
		return exit.Usagef("--kill %v: must be below %v, which the run takes by -D, --rounds, --size and --outstanding", time.Duration(f.kill), total)
	}
	f.programs, err = parsePrograms(f.also)
	return err
}

// kind takes bw or lat from the arguments, and leaves the hosts.
func (f *rpcFlags) kind(c *cobra.Command, args []string) ([]string, error) {
	is := func(word string) bool { return word == report.OpBandwidth || word == report.OpLatency }
	switch {
	case len(args) == 0 || !is(args[0]):
		return args, nil
	case len(args) > 1 && is(args[1]):
		return nil, exit.Usagef("rpc %s %s: say one of them, or neither for both", args[0], args[1])
	}
	if c.Flags().Changed("outstanding") {
		return nil, exit.Usagef("rpc %s and --outstanding contradict each other, as both say how many callers there are: leave one of them out", args[0])
	}
	f.outstanding = f.outstanding[:1]
	if args[0] == report.OpBandwidth {
		f.outstanding = []int{64}
	}
	return args[1:], nil
}

// byChannel tells whether calls go by a channel.
func (f *rpcFlags) byChannel(hosts []string) bool {
	return f.replicas > 0 || f.transport == overAuto || len(hosts) > 1
}

// over names what is measured.
func (f *rpcFlags) over(hosts []string) []string {
	switch {
	case !f.byChannel(hosts):
		return f.names()
	case f.transport == "both":
		return []string{overAuto}
	}
	return []string{f.transport}
}

// names are the transports that servers listen on.
func (f *rpcFlags) names() []string {
	if f.transport == "both" || f.transport == overAuto {
		return []string{"be", "tcp"}
	}
	return []string{f.transport}
}

func (f *rpcFlags) run(e *env, c *cobra.Command, hosts []string) error {
	if err := f.check(c, hosts); err != nil {
		return err
	}
	dev, err := new(chosen), error(nil)
	if f.transport == "tcp" && strings.HasPrefix(f.device.name, simPrefix) && len(hosts) == 0 {
		f.peer.local = true // where both ends would be, if the simulator had a part in it
	}
	if f.replicas > 0 {
		f.peer.local = true
	}
	if f.transport != "tcp" {
		if dev, err = choose(f.device.name); err != nil {
			return err
		}
	}
	role, err := dev.role(hosts, &f.peer)
	if err != nil {
		return err
	}
	o := newOutput(e, c, hosts, &f.output, func(w io.Writer) *report.Table { return report.JobTable(w) })
	o.doc.Args["local"] = role == local
	if dev.dev != nil {
		if o.doc.Device, err = dev.describe(&f.device); err != nil {
			return err
		}
	}
	if role == local && f.transport == overAuto {
		f.replicas = max(f.replicas, 1)
	}
	agreed := f.transport
	if agreed == overAuto {
		agreed = "both" // for a server it is the same
	}
	r := &rpcRun{f: f, e: e, o: o, dev: dev, over: f.over(hosts)}
	r.ends = twoEnds{
		e: e, peer: &f.peer, serve: r.serve, measure: r.measure,
		hello: control.NewHello("rpc", map[string]string{"transport": agreed, "rdma_cm": fmt.Sprint(f.device.cm)}),
	}
	if role == server {
		return r.ends.run(role, hosts)
	}
	r.head()
	r.cmp = report.NewComparison(r.over[0])
	err = profiled(f.output.profile, func() error {
		if f.byChannel(hosts) {
			return r.replicas(role, hosts)
		}
		return r.ends.run(role, hosts)
	})
	return o.finish(r.write(err))
}

// open gives what opens the transport of a name, for one end.
func (r *rpcRun) open(name string) psjob.Open {
	if name != "be" {
		return psjob.OverTCP
	}
	cfg := r.f.device.nodeConfig()
	cfg.LockThreads, cfg.Spin = r.f.lock, r.f.spin
	return psjob.NewNodes(r.dev.again, cfg, r.f.device.cm).Open
}

// params are those of one measurement.
func (f *rpcFlags) params(size, outstanding int) *rpcjob.Params {
	return &rpcjob.Params{
		Size: size, Outstanding: outstanding, Calls: f.calls, Duration: time.Duration(f.duration), Workers: f.workers,
		Stream: f.stream, Window: int(f.window), Verify: f.verify,
	}
}
