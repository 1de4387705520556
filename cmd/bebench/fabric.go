package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/cost"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/fabricjob"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/scenario"
)

// fabricFlags say what of a scenario is simulated, and where charts go.
type fabricFlags struct {
	seed     uint64
	hosts    int
	duration seconds
	variants string
	show     bool
	svg      string
	html     string
	output   outputFlags
}

func newFabric(e *env) *cobra.Command {
	f := new(fabricFlags)
	c := &cobra.Command{
		Use:   "fabric [SCENARIO]",
		Short: "a simulated network in virtual time: incast, training, inference, connections, failures",
		Long: "Runs the engines of ByteExpress on a simulated network in virtual time. SCENARIO is a name, or a file that ends in .json;\n" +
			"without it the scenarios are listed. --show prints the file of one, to begin another with. Everything in the results but\n" +
			"what standard error says is the same for the same scenario and seed, on every machine.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Usagef("%sat most one scenario, got %q", of(c), args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				if c.Flags().NFlag() > 0 {
					return exit.Usagef("fabric: flags are of a scenario: name one of %s, or a file that ends in .json", strings.Join(scenario.Names(), ", "))
				}
				return listScenarios(e)
			}
			return runFabric(e, c, args[0], f)
		},
	}
	fs := c.Flags()
	fs.Uint64Var(&f.seed, "seed", 0, "another seed than the scenario's")
	fs.IntVar(&f.hosts, "hosts", 0, "another number of hosts than the scenario's: roles keep their shares, buffers shrink along")
	fs.Var(&f.duration, "duration", "another virtual time of the load: seconds, or as 2ms")
	fs.StringVar(&f.variants, "variants", "", "these variants, by commas: the scenario's, or "+strings.Join(scenario.Standard(), ", "))
	fs.BoolVar(&f.show, "show", false, "print the scenario's file as it is, whatever other flags say, and run nothing")
	fs.StringVar(&f.svg, "svg", "", "write each chart to an SVG file in a `folder`, which is made if need be")
	fs.StringVar(&f.html, "html", "", "write results and charts to one HTML `file`")
	f.output.addFiles(fs)
	fs.StringVar(&f.output.progress, "progress", "auto", "`when` to show progress on standard error: auto (on a terminal), always, never")
	f.output.limits.addRate(fs)
	f.output.limits.add(fs)
	return c
}

// listScenarios says what there is.
func listScenarios(e *env) error {
	for _, name := range scenario.Names() {
		s, err := scenario.Load(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, " %-18s %5d hosts  %s\n", name, s.Topology.Hosts, s.About)
	}
	return nil
}

// maxFile is more than any scenario has.
const maxFile = 64 << 20

// readBounded reads a file, which may be a device that has no end.
func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = errors.Errorf("%s: more than %d bytes: no scenario has as many", name, maxFile)
	}
	return b, err
}

// load reads the scenario and changes it as the flags say.
func (f *fabricFlags) load(name string) (file []byte, s *scenario.Scenario, err error) {
	if strings.HasSuffix(name, ".json") {
		file, err = readBounded(name)
	} else {
		file, err = scenario.Source(name)
	}
	if err != nil {
		return nil, nil, exit.Usagef("fabric: %w", err)
	}
	if s, err = scenario.Parse(file); err != nil {
		return nil, nil, exit.Usagef("fabric: %s: %w", name, err)
	}
	if f.output.set("seed") {
		s.Seed = f.seed
	}
	if f.duration > 0 {
		if err := s.SetDuration(des.Of(time.Duration(f.duration))); err != nil {
			return nil, nil, exit.Usagef("fabric: --duration: %w", err)
		}
	}
	if f.output.set("hosts") {
		if w := s.Sweep; w != nil && (w.Of == "hosts" || w.Of == "senders") {
			return nil, nil, exit.Usagef("fabric: --hosts: the scenario sweeps %s, which sets the number of hosts: leave one of them out", w.Of)
		}
		if err := s.Scale(f.hosts); err != nil {
			return nil, nil, exit.Usagef("fabric: --hosts: %w", err)
		}
	}
	if f.output.set("variants") {
		if err := s.Pick(strings.Split(f.variants, ",")); err != nil {
			return nil, nil, exit.Usagef("fabric: --variants: %w", err)
		}
	}
	return file, s, nil
}

func (f *fabricFlags) check() error {
	if err := f.output.check(); err != nil {
		return err
	}
	if notReplaceable(f.html) {
		return exit.Usagef("fabric: --html %s: not a regular file: name another", f.html)
	}
	if f.html != "" {
		if err := report.CanSave(f.html); err != nil {
			return errors.Wrap(err, "--html")
		}
	}
	if f.svg != "" {
		return errors.Wrap(os.MkdirAll(f.svg, 0o755), "--svg")
	}
	return nil
}

func runFabric(e *env, c *cobra.Command, name string, f *fabricFlags) error {
	file, s, err := f.load(name)
	if err != nil {
		return err
	}
	if f.show {
		_, err := e.stdout.Write(file)
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	o := newOutput(e, c, nil, &f.output, report.FabricTable)
	// Virtual time knows no clock and no machine, so the document has none.
	o.doc.Started, o.doc.Host, o.doc.Scenario = "", nil, s
	o.doc.Args = map[string]any{"scenario": name}
	for _, flag := range []string{"seed", "hosts", "duration", "variants"} {
		if f.output.set(flag) {
			o.doc.Args[flag] = c.Flags().Lookup(flag).Value.String()
		}
	}
	_ = report.Rule(o.text)
	o.printf(" %s\n %d hosts, seed %d, %v of load in virtual time\n", strings.TrimSuffix(s.Name+": "+s.About, ": "), s.Topology.Hosts, s.Seed, s.Duration)
	_ = report.Rule(o.text)
	var done fabricjob.Results
	err = profiled(f.output.profile, func() error { return runJobs(e, o, s, &done) })
	_ = report.Rule(o.text)
	o.doc.Ratios = done.Ratios()
	for i := range o.doc.Ratios {
		_ = report.WriteRatio(o.text, &o.doc.Ratios[i])
	}
	if chartErr := f.charts(s, &done); err == nil {
		err = chartErr
	}
	return o.finish(err)
}

// runJobs runs variant by variant, and says on standard error what that took.
func runJobs(e *env, o *output, s *scenario.Scenario, done *fabricjob.Results) error {
	jobs := s.Jobs()
	for i := range jobs {
		j := &jobs[i]
		begin, what := cost.Start(), j.Label()
		var setUp cost.Spent
		r, err := j.Run(func(now, total des.Time) error {
			if e.soft.Err() != nil {
				return control.ErrInterrupted
			}
			if setUp.Wall == 0 {
				setUp = begin.Since()
			}
			o.progress(fmt.Sprintf("%s (%d of %d), virtual us", what, i+1, len(jobs)), 0, int64(now/des.Microsecond), int64(total/des.Microsecond))
			return nil
		})
		if err != nil {
			return err
		}
		load := begin.Since().Sub(setUp)
		for k, row := range done.Add(s, r) {
			if err := o.row(row, k == 0); err != nil {
				return err
			}
		}
		if o.flags.progress != "never" {
			fmt.Fprintf(e.stderr, " %s: %.2f s of processor time for set-up, %.2f s for %d events\n", what, setUp.Busy().Seconds(), load.Busy().Seconds(), r.Events)
		}
	}
	return nil
}

// charts writes what the flags ask for.
func (f *fabricFlags) charts(s *scenario.Scenario, done *fabricjob.Results) error {
	if f.svg == "" && f.html == "" {
		return nil
	}
	charts := done.Charts(s)
	if f.svg != "" {
		for i := range charts {
			if err := charts[i].Plot.Save(filepath.Join(f.svg, charts[i].File+".svg")); err != nil {
				return errors.Wrap(err, "--svg")
			}
		}
	}
	if f.html == "" {
		return nil
	}
	page := done.Page(s, charts)
	return errors.Wrap(page.Save(f.html), "--html")
}
