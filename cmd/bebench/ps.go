package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/psjob"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/size"
)

// psFlags are those of the parameter-server job.
type psFlags struct {
	device deviceFlags
	peer   peerFlags
	output outputFlags

	workload  string
	transport string
	keysFrom  string
	min, max  size.Bytes
	keys      int
	kill      seconds
	rebalance seconds
	requests  int
	duration  seconds
	cfg       psjob.Config
}

func newPS(e *env) *cobra.Command {
	f := &psFlags{}
	c := &cobra.Command{
		Use: "ps [HOST...]", Short: "run the parameter-server job", DisableFlagsInUseLine: true,
		Long: "Workers fetch rows from the shards of a parameter server and, in training, push gradients to them.\n" +
			"Without a host this is the server of the shards; with hosts, as HOST or HOST:PORT, the workers, and the hosts share the shards.\n" +
			"With --replicas each shard is at so many servers, by a map that the workers follow, and over channels, which repeat what\n" +
			"a server did not answer; give the servers the same --replicas. The replicas of a shard are on as many hosts as there are.\n" +
			"On sim: and with --local all is in this process (--transport tcp alone needs --local for that).\n" +
			"Results, JSON files and thresholds are the workers'.",
		RunE: func(c *cobra.Command, hosts []string) error { return f.run(e, c, hosts) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.device.add(fs)
	f.peer.add(fs)
	f.add(fs)
	f.output.add(fs)
	return c
}

func (f *psFlags) add(fs *pflag.FlagSet) {
	d := psjob.Defaults(psjob.Inference)
	fs.StringVar(&f.workload, "workload", string(psjob.Inference), "inference: fetches of 1 KB to 1 MB; training: fetches and pushes of 8 to 48 KB")
	fs.StringVar(&f.transport, "transport", "both", "be, tcp, both in turn, or, of --replicas, auto: be, and tcp where that fails")
	fs.IntVar(&f.cfg.Shards, "shards", d.Shards, "shards of the table, in all")
	fs.IntVar(&f.cfg.Replicas, "replicas", 0, "servers of each shard, by a map; 0: one without a map")
	fs.IntVar(&f.cfg.Workers, "workers", d.Workers, "workers, each with its own connections")
	fs.IntVar(&f.cfg.Outstanding, "outstanding", d.Outstanding, "requests that each worker keeps outstanding")
	fs.IntVar(&f.cfg.Dim, "dim", d.Dim, "float32 values of a row")
	fs.IntVar(&f.cfg.Rows, "rows", d.Rows, "distinct keys, skewed as words are, without --keys-from")
	fs.StringVar(&f.keysFrom, "keys-from", "", "take the words of a text file, or of all files below a directory, as keys: 4194304 words at most")
	fs.IntVar(&f.keys, "keys", 0, "keys of each request; 0: by --min-size and --max-size")
	fs.Var(&f.min, "min-size", "least bytes of rows in a request (default of the workload)")
	fs.Var(&f.max, "max-size", "most bytes of rows in a request (default of the workload)")
	fs.IntVarP(&f.requests, "iters", "n", 0, "requests of each operation and transport; 0: by -D")
	f.duration = seconds(5 * time.Second)
	fs.VarP(&f.duration, "duration", "D", "measured seconds of each transport, without what verification takes")
	fs.Var(&f.kill, "kill", "end one of the --replicas after so many seconds of the run, in this process; none without it")
	fs.Var(&f.rebalance, "rebalance-after", "change the map of the --replicas after so many seconds of the run, while shards serve; it does not change without it")
	fs.IntVar(&f.cfg.ThenShards, "rebalance-shards", 0, "shards of the table by the map of --rebalance-after, 1 to 1024; 0: one more than --shards")
	fs.Uint64Var(&f.cfg.Seed, "seed", d.Seed, "of keys, sizes and values")
	fs.BoolVar(&f.cfg.Verify, "verify", true, "compare every value fetched, bit by bit")
}

// inEffect makes args those that the job runs with.
func (f *psFlags) inEffect(args map[string]any, role mode) {
	args["local"], args["min-size"], args["max-size"] = role == local, f.cfg.MinBytes, f.cfg.MaxBytes
	if f.requests > 0 {
		delete(args, "duration")
	}
	if f.keysFrom != "" {
		delete(args, "rows")
	}
}

// names are the transports of the job.
func (f *psFlags) names() []string {
	if f.transport == "both" {
		return []string{"be", "tcp"}
	}
	return []string{f.transport}
}

func (f *psFlags) check(c *cobra.Command, hosts []string) error {
	d := psjob.Defaults(psjob.Workload(f.workload))
	f.cfg.Workload, f.cfg.SliceBytes = d.Workload, d.SliceBytes
	f.cfg.MinBytes, f.cfg.MaxBytes = d.MinBytes, d.MaxBytes
	set := c.Flags().Changed
	if set("min-size") {
		f.cfg.MinBytes = int(f.min)
		f.cfg.MaxBytes = max(f.cfg.MaxBytes, f.cfg.MinBytes)
	}
	if set("max-size") {
		f.cfg.MaxBytes = int(f.max)
		if !set("min-size") {
			f.cfg.MinBytes = min(f.cfg.MinBytes, f.cfg.MaxBytes)
		}
	}
	if f.keys > 0 && f.cfg.Dim > 0 {
		if most := psjob.MaxRequestBytes / 4 / f.cfg.Dim; f.keys > most {
			return exit.Usagef("--keys %d: must be 0 to %d by --dim %d, or a request has more than %d bytes", f.keys, most, f.cfg.Dim, psjob.MaxRequestBytes)
		}
		f.cfg.MinBytes, f.cfg.MaxBytes = 4*f.cfg.Dim*f.keys, 4*f.cfg.Dim*f.keys
	}
	if err := firstOf(f.device.check(), f.peer.check(hosts, &f.device), f.output.check(), inRange("iters", f.requests, 0, 1<<40),
		inRange("keys", f.keys, 0, 1<<20), f.device.unused(set, f.transport == "tcp"), contradict(set("keys") && (set("min-size") || set("max-size")), "--keys and --min-size or --max-size contradict each other")); err != nil {
		return err
	}
	switch {
	case f.device.cm && f.transport == "tcp":
		return exit.Usagef("-R and --transport tcp contradict each other: leave one of them out")
	case f.transport == overAuto && f.cfg.Replicas == 0:
		return exit.Usagef("--transport auto is of channels to replicas: give --replicas, 1 or more, as well")
	case f.transport != "be" && f.transport != "tcp" && f.transport != "both" && f.transport != overAuto:
		return exit.Usagef("--transport %q: want be, tcp, both or auto", f.transport)
	case f.requests > 0 && set("duration"):
		return exit.Usagef("-D and -n contradict each other: leave one of them out")
	case f.keysFrom != "" && set("rows"):
		return exit.Usagef("--rows and --keys-from contradict each other: leave one of them out")
	case f.output.interval > 0:
		return exit.Usagef("--interval: ps has no results before its end: leave it out")
	}
	if f.rebalance > 0 && f.cfg.ThenShards == 0 {
		f.cfg.ThenShards = f.cfg.Shards + 1
	}
	if err := f.cfg.Check(); err != nil {
		return exit.Usagef("%w", err)
	}
	if f.changes() { // so that fetches and pushes of every phase are measured
		f.cfg.SliceBytes /= 8
	}
	return f.checkChange(c, hosts)
}

// mostHosts is how many hosts the shards can be on: replica j of shard i is on host i + j.
func (f *psFlags) mostHosts() int {
	return max(f.cfg.Shards, f.cfg.ThenShards) + max(f.cfg.Replicas-1, 0)
}

func (f *psFlags) run(e *env, c *cobra.Command, hosts []string) error {
	if err := f.check(c, hosts); err != nil {
		return err
	}
	var dev *chosen
	var err error
	role := server
	switch {
	case f.transport != "tcp":
		if dev, err = choose(f.device.name); err != nil {
			return err
		}
		if role, err = dev.role(hosts, &f.peer); err != nil {
			return err
		}
	case len(hosts) > 0:
		role = client
	case f.peer.local:
		role = local
	}
	o := newOutput(e, c, hosts, &f.output, report.JobTable)
	f.inEffect(o.doc.Args, role)
	if dev != nil {
		if o.doc.Device, err = dev.describe(&f.device); err != nil {
			return err
		}
	}
	jobs := &jobSet{e: e, o: o, be: f.device.nodeConfig(), cm: f.device.cm}
	if dev != nil {
		jobs.open = dev.again
	}
	hello := control.NewHello("ps", f.cfg.Agreed())
	hello.Options["transport"], hello.Options["rdma_cm"] = f.transport, fmt.Sprint(f.device.cm)
	if role == server && f.changes() {
		return exit.Usagef("--kill and --rebalance-after are not for a server, which this is without a host: give hosts, or --local")
	}
	if role == server {
		return (&psServer{f, jobs, hello}).run()
	}
	stream, err := f.stream(e, o)
	if err != nil {
		return err
	}
	f.head(o, dev, hosts)
	err = profiled(f.output.profile, func() error {
		if role == client {
			return (&psClient{f: f, jobs: jobs, hello: hello}).run(hosts, stream)
		}
		var err error
		if f.cfg.Replicas > 0 {
			err = jobs.startReplicas(time.Duration(f.peer.timeout), &f.cfg, stream, f.names()...)
		} else {
			err = jobs.start(&f.cfg, stream, f.names()...)
		}
		if err != nil {
			return err
		}
		return f.drive(jobs)
	})
	return o.finish(jobs.finish(err))
}

// more says whether a job takes another turn.
func (f *psFlags) more(j *job) (bool, int) {
	if f.requests > 0 {
		left := f.requests - int(j.Ops())
		return left > 0, left
	}
	return j.Measured() < time.Duration(f.duration) || f.changes() && !j.Changed(), 0
}

// stream gives the keys, and tells about a text's.
func (f *psFlags) stream(e *env, o *output) ([]uint64, error) {
	if f.keysFrom == "" {
		return psjob.Synthetic(f.cfg.Rows, f.cfg.Seed), nil
	}
	keys, err := psjob.FromText(e.soft, f.keysFrom)
	if err != nil {
		return nil, err
	}
	o.printf(" keys: %d words of %s, %d distinct; the 100 most frequent are %.0f%% of all\n",
		len(keys), f.keysFrom, len(psjob.Distinct(keys)), 100*psjob.TopShare(keys, 100))
	return keys, nil
}

func (f *psFlags) head(o *output, dev *chosen, hosts []string) {
	_ = report.Rule(o.text)
	where := "in this process"
	if len(hosts) > 0 {
		where = "on other hosts"
	}
	replicas := ""
	if f.cfg.Replicas > 0 {
		replicas = fmt.Sprintf(" of %d replicas", f.cfg.Replicas)
	}
	o.printf(" Parameter server, %s: %d shards%s %s, %d workers with %d requests outstanding each, on %d CPUs.\n",
		f.workload, f.cfg.Shards, replicas, where, f.cfg.Workers, f.cfg.Outstanding, runtime.GOMAXPROCS(0))
	o.printf(" Requests of %d to %d bytes of rows, %d bytes a row.\n", f.cfg.MinBytes, f.cfg.MaxBytes, 4*f.cfg.Dim)
	if dev != nil {
		o.printf(" be:  ByteExpress on %s (%s)\n", dev.name, o.doc.Device.Provider)
		if dev.sim() {
			o.printf("      a simulated NIC in this process: no RDMA hardware is measured\n")
		}
	}
	_ = report.Rule(o.text)
}
