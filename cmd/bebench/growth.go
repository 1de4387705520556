package main

import (
	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/allocjob"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/mr"
)

// growthFlags say how far the live set grows, and where the chart goes.
type growthFlags struct {
	workload string
	source   string
	live     int
	samples  int
	svg      string
	output   outputFlags
}

func newGrowth(e *env) *cobra.Command {
	f := new(growthFlags)
	c := &cobra.Command{
		Use: "growth", Short: "registered bytes while a live set grows and then stays", Args: noSuchCommand,
		RunE: func(c *cobra.Command, _ []string) error { return runGrowth(e, c, f) },
	}
	fs := c.Flags()
	fs.StringVarP(&f.workload, "workload", "w", "small", "sizes: small (16 B to 16 KiB), large (64 KiB to 1 MiB)")
	fs.StringVar(&f.source, "source", "heap", "where the thread allocates: heap (its own), pool (the pool's own calls)")
	fs.IntVar(&f.live, "live", 256, "live set to grow to, in `MiB`")
	fs.IntVar(&f.samples, "samples", 64, "points of the result, half of them while the set grows")
	fs.StringVar(&f.svg, "svg", "", "write a chart to a `file`")
	f.output.addFiles(fs)
	return c
}

func (f *growthFlags) check() (allocjob.Workload, error) {
	if err := f.output.check(); err != nil {
		return allocjob.Workload{}, err
	}
	w, ok := workloads[f.workload]
	switch {
	case !ok:
		return w, exit.Usagef("alloc growth: --workload %q: want small or large", f.workload)
	case f.source != "heap" && f.source != "pool":
		return w, exit.Usagef("alloc growth: --source %q: want heap or pool", f.source)
	case f.live < 1 || f.live > 64<<10:
		return w, exit.Usagef("alloc growth: --live %d: want 1 to %d", f.live, 64<<10)
	case f.samples < 2 || f.samples > 10_000:
		return w, exit.Usagef("alloc growth: --samples %d: want 2 to 10000", f.samples)
	case notReplaceable(f.svg):
		return w, exit.Usagef("alloc growth: --svg %s: not a regular file: name another", f.svg)
	case f.svg != "":
		return w, errors.Wrap(report.CanSave(f.svg), "--svg")
	}
	return w, nil
}

func runGrowth(e *env, c *cobra.Command, f *growthFlags) error {
	w, err := f.check()
	if err != nil {
		return err
	}
	o := newOutput(e, c, nil, &f.output, report.GrowthTable)
	pool, err := bemalloc.New(bemalloc.Config{Registrar: noDevice{}})
	if err != nil {
		return err
	}
	live, registered := report.Line{Name: "live"}, report.Line{Name: "registered"}
	cfg := allocjob.GrowthConfig{Workload: w, LiveBytes: int64(f.live) << 20, Samples: f.samples, Heap: f.source == "heap", Pool: pool}
	cfg.Sampled = func(s allocjob.GrowthSample) error {
		if err := e.soft.Err(); err != nil {
			return err
		}
		const mebi = 1 << 20
		live.Points = append(live.Points, [2]float64{float64(s.Ops) / 1e3, float64(s.Live) / mebi})
		registered.Points = append(registered.Points, [2]float64{float64(s.Ops) / 1e3, float64(s.Registered) / mebi})
		return o.row(growthRow(f.source, s), false)
	}
	err = profiled(f.output.profile, func() error { return allocjob.Growth(cfg) })
	err = joined([]error{err, pool.Close()})
	if err == nil && f.svg != "" {
		plot := report.Plot{
			Title: "registered memory while a live set grows and stays (" + w.Name + ")", X: "thousand operations", Y: "MiB",
			Lines: []report.Line{registered, live},
		}
		err = errors.Wrap(plot.Save(f.svg), "--svg")
	}
	return o.finish(err)
}

func growthRow(source string, s allocjob.GrowthSample) report.Row {
	phase := "growth"
	if s.Plateau {
		phase = "plateau"
	}
	r := report.Sample{Name: source, Op: phase, Ops: int64(s.Ops), Wall: s.Elapsed, Counters: map[string]int64{
		"live_bytes": s.Live, "in_use_bytes": s.InUse, "registered_bytes": s.Registered, "registrations": s.Registrations,
	}}
	return r.Row()
}

// noDevice registers memory with nothing, so that registrations are counted.
type noDevice struct{}

func (noDevice) Register(b []byte, _ mr.Access) (mr.Region, error) {
	return mr.Region{Addr: mr.Addr(b), Length: uint64(len(b))}, nil
}

func (noDevice) Deregister(mr.Region) error { return nil }
