package main

import (
	stderrors "errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

// outputFlags say where results go and what they must reach.
type outputFlags struct {
	json     string
	stream   bool
	interval seconds
	progress string
	profile  string
	gbits    bool
	limits   limits
	set      func(flag string) bool // whether the command line has the flag
}

// add is for commands whose rows have latencies, and which tell how far they are.
func (o *outputFlags) add(fs *pflag.FlagSet) {
	o.addFiles(fs)
	fs.Var(&o.interval, "interval", "also report every so many seconds what was done since")
	fs.StringVar(&o.progress, "progress", o.progress, "`when` to show progress on standard error: auto (on a terminal), always, never")
	o.limits.addRate(fs)
	o.limits.add(fs)
}

// addFiles is for all commands.
func (o *outputFlags) addFiles(fs *pflag.FlagSet) {
	o.set, o.progress = fs.Changed, "auto"
	fs.StringVar(&o.json, "json", "", "write the results as JSON to a `file`, or with - to standard output instead of the table")
	fs.BoolVar(&o.stream, "json-stream", false, "write each result as one line of JSON to standard output instead of the table")
	fs.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of the run for go tool pprof to a `file`")
}

func (o *outputFlags) check() error {
	if o.json == "-" && o.stream {
		return exit.Usagef("--json - and --json-stream both write to standard output: leave one of them out, or name a file")
	}
	if notReplaceable(o.json) {
		return exit.Usagef("--json %s: not a regular file: name another, or - for standard output", o.json)
	}
	switch o.progress {
	case "auto", "always", "never":
	default:
		return exit.Usagef("--progress %q: want auto, always or never", o.progress)
	}
	if err := o.limits.check(o.set); err != nil {
		return err
	}
	if o.json == "" || o.json == "-" {
		return nil
	}
	return errors.Wrap(report.CanSave(o.json), "JSON result")
}

// notReplaceable reports whether something is there that is not a file. Results replace
// the file in one step, which must not happen to a device.
func notReplaceable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

// limits are thresholds; 0 is none. A miss is exit status 3.
type limits struct {
	minBW, minRate, maxP99, maxMean float64
}

func (l *limits) add(fs *pflag.FlagSet) {
	fs.Float64Var(&l.minBW, "min-bw", 0, "fail below this average bandwidth in `Gbit/s`")
	fs.Float64Var(&l.maxP99, "max-p99", 0, "fail above this 99th percentile of latency in `microseconds`")
	fs.Float64Var(&l.maxMean, "max-mean", 0, "fail above this mean latency in `microseconds`")
}

func (l *limits) addRate(fs *pflag.FlagSet) {
	fs.Float64Var(&l.minRate, "min-msgrate", 0, "fail below so many `million` operations a second")
}

func (l *limits) check(set func(flag string) bool) error {
	for flag, v := range map[string]float64{"min-bw": l.minBW, "min-msgrate": l.minRate, "max-p99": l.maxP99, "max-mean": l.maxMean} {
		if set(flag) && !(v > 0) { // NaN is refused too
			return exit.Usagef("--%s %v: must be more than 0", flag, v)
		}
	}
	return nil
}

// missed gives an error for every limit that a row misses. What was not measured
// misses its limit.
func (l *limits) missed(r *report.Row) error {
	lat := r.LatencyUS
	if lat == nil {
		lat = &report.Latency{}
	}
	name := r.Name
	if r.Op != "" {
		name = r.Op + " over " + r.Name
	}
	if r.SizeBytes > 0 {
		name += fmt.Sprintf(" %d bytes", r.SizeBytes)
	}
	var errs []error
	low := func(flag, what string, got *float64, scale, limit float64) {
		switch {
		case limit == 0:
		case got == nil:
			errs = append(errs, exit.Thresholdf("%s: --%s %v: no %s was measured", name, flag, limit, what))
		case *got*scale < limit:
			errs = append(errs, exit.Thresholdf("%s: %s is %.3f, below --%s %v", name, what, *got*scale, flag, limit))
		}
	}
	high := func(flag, what string, got, limit float64) {
		switch {
		case limit == 0:
		case r.LatencyUS == nil:
			errs = append(errs, exit.Thresholdf("%s: --%s %v: no latency was measured", name, flag, limit))
		case got > limit:
			errs = append(errs, exit.Thresholdf("%s: %s is %.3f us, above --%s %v", name, what, got, flag, limit))
		}
	}
	low("min-bw", "bandwidth in Gbit/s", r.GbitPerS, 1, l.minBW)
	low("min-msgrate", "rate in million/s", r.OpsPerS, 1e-6, l.minRate)
	high("max-p99", "99th percentile", lat.P99, l.maxP99)
	high("max-mean", "mean latency", lat.Mean, l.maxMean)
	return joined(errs)
}

// output writes one run's results as they come.
type output struct {
	e       *env
	flags   *outputFlags
	doc     *report.Document
	text    io.Writer // the human-readable part
	stdout  io.Writer
	stderr  io.Writer
	table   *report.Table
	missed  []error
	started bool

	mu   sync.Mutex // of what progress uses; it comes from other goroutines
	bar  *progressbar.ProgressBar
	last time.Time // of interval rows
	done int64
}

func newOutput(e *env, c *cobra.Command, hosts []string, f *outputFlags, table func(io.Writer) *report.Table) *output {
	name := c.CommandPath()[len(c.Root().Name()):]
	if name != "" {
		name = name[1:]
	}
	o := &output{
		e: e, flags: f, doc: report.New(name, args(c, hosts), time.Now()), text: e.stdout, stdout: e.stdout, stderr: e.stderr,
	}
	if f.stream || f.json == "-" {
		o.text = io.Discard
	}
	o.table = table(o.text)
	return o
}

// printf writes to the human-readable part.
func (o *output) printf(format string, args ...any) { fmt.Fprintf(o.text, format, args...) }

// save brings the JSON file up to date.
func (o *output) save() error {
	if o.flags.json == "" || o.flags.json == "-" {
		return nil
	}
	return o.doc.Save(o.flags.json)
}

// row writes one result. Thresholds hold for it if judged.
func (o *output) row(r report.Row, judged bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clearBar()
	o.done, o.last = 0, time.Time{}
	o.doc.Rows = append(o.doc.Rows, r)
	o.doc.Interrupted = o.doc.Interrupted || r.Interrupted
	if judged {
		if err := o.flags.limits.missed(&r); err != nil {
			o.missed = append(o.missed, err)
		}
	}
	if err := o.show(&r); err != nil {
		return err
	}
	if err := report.WriteBars(o.text, &r); err != nil {
		return errors.Wrap(err, "results")
	}
	return o.save()
}

func (o *output) show(r *report.Row) error {
	if o.flags.stream {
		return o.doc.Stream(o.stdout, r)
	}
	if !o.started {
		o.started = true
		if err := o.table.Head(); err != nil {
			return errors.Wrap(err, "results")
		}
	}
	return errors.Wrap(o.table.Row(r), "results")
}

// progress shows how far the measurement is, and with --interval reports what was
// done since the last report. It may be called from any goroutine.
func (o *output) progress(name string, size int, done, total int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if every := time.Duration(o.flags.interval); every > 0 {
		now := time.Now()
		if o.last.IsZero() {
			o.last, o.done = now, done
		} else if dt := now.Sub(o.last); dt >= every {
			s := report.Sample{Name: name, SizeBytes: size, Ops: done - o.done, Bytes: (done - o.done) * int64(size), Wall: dt}
			r := s.Row()
			r.Interval = true
			o.clearBar()
			_ = o.show(&r)
			o.last, o.done = now, done
		}
	}
	if !o.showsProgress() {
		return
	}
	if o.bar == nil {
		if total == 0 {
			total = -1
		}
		o.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(o.stderr), progressbar.OptionSetDescription(name),
			progressbar.OptionShowIts(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetSpinnerChangeInterval(0)) // no goroutine of its own
	}
	_ = o.bar.Set64(done)
}

func (o *output) showsProgress() bool {
	switch o.flags.progress {
	case "always":
		return true
	case "never":
		return false
	}
	f, ok := o.stderr.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (o *output) clearBar() {
	if o.bar != nil {
		_ = o.bar.Clear()
		_ = o.bar.Exit()
		o.bar = nil
	}
}

// finish writes what remains and gives the run's error: err, or the thresholds
// that were missed.
func (o *output) finish(err error) error {
	o.mu.Lock()
	o.clearBar()
	o.mu.Unlock()
	if err != nil && o.e.soft.Err() != nil && exit.Code(err) == exit.Failed && !errors.Is(err, control.ErrInterrupted) {
		err = fmt.Errorf("%w: %v", control.ErrInterrupted, err) // what was under way broke off
	}
	if err != nil {
		o.doc.Error = err.Error()
		o.doc.Interrupted = o.doc.Interrupted || errors.Is(err, control.ErrInterrupted)
	}
	all := joined(append([]error{err}, o.missed...))
	var writeErr error
	if o.flags.json == "-" {
		writeErr = o.doc.Write(o.stdout)
	} else {
		writeErr = o.save()
	}
	if o.flags.stream {
		writeErr = joined([]error{writeErr, o.doc.StreamRatios(o.stdout)})
	}
	return joined([]error{all, writeErr})
}

// joined is errors.Join, but gives a single error as it is.
func joined(errs []error) error {
	var some []error
	for _, err := range errs {
		if err != nil {
			some = append(some, err)
		}
	}
	if len(some) == 1 {
		return some[0]
	}
	return stderrors.Join(some...)
}
