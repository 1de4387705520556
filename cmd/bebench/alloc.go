package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/allocjob"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

// allocFlags say which allocator workloads to run. The letters are those of the C
// harness that measures other allocators, so that --tsv stands beside it.
type allocFlags struct {
	workload   string
	threads    string
	iterations uint64
	touch      string
	name       string
	source     string
	huge       string
	tsv        bool
	output     outputFlags
}

// workloads are the sets of sizes by name.
var workloads = map[string]allocjob.Workload{"small": allocjob.Small, "large": allocjob.Large}

func newAlloc(e *env) *cobra.Command {
	f := new(allocFlags)
	c := &cobra.Command{
		Use: "alloc", Short: "the allocator workloads: small and large buffers, a tenth freed by other threads", Args: noSuchCommand,
		Long: "Threads allocate, write to and free buffers of random sizes, and hand a tenth of them to another thread to free, with each\n" +
			"workload, thread count and source in turn. An operation is an allocation or a free; registered/live is the memory that\n" +
			"the pool has registered divided by what the live buffers ask for; stalls are the times that a thread waited for another.",
		RunE: func(c *cobra.Command, _ []string) error { return runAlloc(e, c, f) },
	}
	c.AddCommand(newGrowth(e))
	fs := c.Flags()
	fs.StringVarP(&f.workload, "workload", "w", "small,large", "workloads: small (16 B to 16 KiB), large (64 KiB to 1 MiB)")
	fs.StringVarP(&f.threads, "threads", "t", "1,2,4,8", "thread counts")
	fs.Uint64VarP(&f.iterations, "iters", "i", 0, "iterations of all threads together, an allocation and a free each; 0: the workload's")
	fs.StringVarP(&f.touch, "touch", "p", "page", "what is written of a buffer: page (a byte of every page), edge (its ends)")
	fs.StringVarP(&f.name, "name", "n", "", "name of the result; default: the source")
	fs.StringVar(&f.source, "source", "heap,pool", "where threads allocate: heap (one for each), pool (the pool's own calls)")
	fs.StringVar(&f.huge, "huge", "advise", "pages: advise (transparent huge pages), off")
	fs.BoolVar(&f.tsv, "tsv", false, "one run, printed as one line of tab-separated values instead of the table, the process's peak of memory included")
	f.output.addFiles(fs)
	f.output.limits.addRate(fs)
	return c
}

func runAlloc(e *env, c *cobra.Command, f *allocFlags) error {
	runs, err := f.runs()
	if err != nil {
		return err
	}
	if f.tsv {
		if len(runs) != 1 {
			return exit.Usagef("alloc: --tsv is for one workload, one thread count and one source, as -w small -t 2 --source heap: got %d runs", len(runs))
		}
		for _, flag := range []string{"json", "json-stream", "cpuprofile", "min-msgrate"} {
			if err := contradict(f.output.set(flag), "alloc: --tsv prints its line and nothing else, and --"+flag+" asks for more"); err != nil {
				return err
			}
		}
		return runs[0].tsv(e)
	}
	o := newOutput(e, c, nil, &f.output, report.AllocTable)
	_ = report.Rule(o.text)
	o.printf(" allocator workloads: each thread a goroutine, on as many Ps; touch %s, pages %s\n", f.touch, f.huge)
	_ = report.Rule(o.text)
	err = profiled(f.output.profile, func() error { return runEach(e, o, runs) })
	_ = report.Rule(o.text)
	return o.finish(err)
}

// runEach does the runs one after the other, until one fails or an interrupt.
func runEach(e *env, o *output, runs []allocRun) error {
	for i := range runs {
		if err := e.soft.Err(); err != nil {
			return err
		}
		r, err := runs[i].run()
		if err != nil {
			return err
		}
		if err := o.row(runs[i].row(&r), true); err != nil {
			return err
		}
		if want, ok := runs[i].cfg.Checksum(); ok && want != r.Checksum {
			return exit.Mismatchf("alloc: %s: checksum %d, want %d", runs[i].op(), r.Checksum, want)
		}
	}
	return nil
}

// allocRun is one of the runs that the flags ask for.
type allocRun struct {
	cfg  allocjob.Config
	pool bemalloc.Config
	name string
}

func (f *allocFlags) runs() (runs []allocRun, err error) {
	if err := f.output.check(); err != nil {
		return nil, err
	}
	var pool bemalloc.Config
	switch f.huge {
	case "advise":
	case "off":
		pool.HugePages = bemalloc.HugeOff
	default:
		return nil, exit.Usagef("alloc: --huge %q: want advise or off", f.huge)
	}
	if f.touch != "page" && f.touch != "edge" {
		return nil, exit.Usagef("alloc: --touch %q: want page or edge", f.touch)
	}
	for _, w := range strings.Split(f.workload, ",") {
		work, ok := workloads[w]
		if !ok {
			return nil, exit.Usagef("alloc: --workload %q: want small or large", w)
		}
		for _, t := range strings.Split(f.threads, ",") {
			threads, err := strconv.Atoi(t)
			if err != nil || threads < 1 || threads > allocjob.MaxThreads {
				return nil, exit.Usagef("alloc: --threads %q: want numbers from 1 to %d", t, allocjob.MaxThreads)
			}
			if f.iterations > 0 && f.iterations < uint64(threads) {
				return nil, exit.Usagef("alloc: --iters %d: want at least one for each of %d threads", f.iterations, threads)
			}
			for _, s := range strings.Split(f.source, ",") {
				if s != "heap" && s != "pool" {
					return nil, exit.Usagef("alloc: --source %q: want heap or pool", s)
				}
				name := f.name
				if name == "" {
					name = s
				}
				cfg := allocjob.Config{Workload: work, Threads: threads, Iterations: f.iterations, Edge: f.touch == "edge", Heaps: s == "heap"}
				runs = append(runs, allocRun{cfg, pool, name})
			}
		}
	}
	return runs, nil
}

func (r *allocRun) op() string {
	return fmt.Sprintf("%s/%s/threads=%d", r.cfg.Workload.Name, r.cfg.Touch(), r.cfg.Threads)
}

// run does the work on a pool of its own.
func (r *allocRun) run() (allocjob.Result, error) {
	pool, err := bemalloc.New(r.pool)
	if err != nil {
		return allocjob.Result{}, err
	}
	cfg := r.cfg
	cfg.Pool = pool
	res, err := allocjob.Run(cfg)
	return res, joined([]error{err, pool.Close()})
}

// row puts a result into the document's units. The memory of the process grows from
// run to run; what the pool registered is each run's own.
func (r *allocRun) row(res *allocjob.Result) report.Row {
	s := report.Sample{
		Name: r.name, Op: r.op(), Ops: int64(res.Ops), Wall: res.Elapsed,
		Counters: map[string]int64{
			"registered_bytes": res.Registered, "live_bytes": int64(res.NominalBytes), "checksum": int64(res.Checksum), "stalls": int64(res.Stalls),
		},
	}
	if _, ok := r.cfg.Checksum(); ok {
		verified := true
		s.Verified = &verified
	}
	row := s.Row()
	if res.CPU > 0 && res.Ops > 0 {
		ns := float64(res.CPU) / float64(res.Ops)
		row.CPUNSPerOp = &ns
	}
	return row
}

// tsv runs once and prints the C harness's line.
func (r *allocRun) tsv(e *env) error {
	res, err := r.run()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "%s\t%s\t%s\t%d\t%d\t%d\t%.4f\t%.0f\t%d\t%d\t%d\t%016x:%d\t%d\t%.4f\n",
		r.name, r.cfg.Workload.Name, r.cfg.Touch(), r.cfg.Threads, res.Iterations, res.Ops, res.Elapsed.Seconds(),
		float64(res.Ops)/res.Elapsed.Seconds(), res.NominalBytes, res.PeakBytes, res.BaseBytes, res.TableHash, res.Checksum,
		res.Stalls, res.CPU.Seconds())
	return err
}
