package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/perftest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/verbs"
)

// pairTest is a measurement between two ends on a device: of verbs, or of messages.
// Its flags have been checked.
type pairTest struct {
	flags *pairFlags

	name    string // of the rows
	title   string // of the measurement, for people
	sizes   []int
	latency bool
	verify  *bool // the flag; without it, whether this process has both ends, on a simulator or without a device
	// agreed gives what both ends must have in common, once verify is known.
	agreed func() map[string]string
	// end plays one end over a control connection.
	end func(ctx context.Context, c *control.Conn, dev verbs.Device, client bool, sink report.Sink) error
	// foreign plays one end against a program of perftest; nil: the peer is bebench.
	foreign  func(ctx context.Context, c *perftest.Conn, dev verbs.Device, sink report.Sink) error
	noDevice bool // no RDMA device has part in it
	// setup writes how the ends are connected, for people.
	setup func(o *output)
	// explain writes what a row has that the table has not; nil: nothing.
	explain func(io.Writer, *report.Row) error
	// times says what the latencies are, as a sentence.
	times string
}

func (t *pairTest) run(e *env, c *cobra.Command, hosts []string) error {
	dev, role, err := t.ends(hosts)
	if err != nil {
		return err
	}
	if !c.Flags().Changed("verify") && t.foreign == nil {
		*t.verify = dev.sim() || t.noDevice && role == local
	}
	table := report.LatencyTable
	if !t.latency {
		table = func(w io.Writer) *report.Table { return report.BandwidthTable(w, t.flags.output.gbits) }
	}
	o := newOutput(e, c, hosts, &t.flags.output, table)
	o.doc.Args["verify"], o.doc.Args["local"] = *t.verify, role == local
	if !t.noDevice {
		if o.doc.Device, err = dev.describe(&t.flags.device); err != nil {
			return err
		}
	}
	ends := twoEnds{
		e: e, peer: &t.flags.peer, hello: control.NewHello(o.doc.Command, t.agreed()),
		serve: func(ctx context.Context, conn *control.Conn) error {
			d, err := dev.again()
			if err != nil {
				conn.Fail(err)
				return err
			}
			return t.end(ctx, conn, d, false, report.Sink{})
		},
		measure: func(ctx context.Context, conn *control.Conn) error {
			return t.end(ctx, conn, dev.dev, true, t.sink(o))
		},
	}
	if t.foreign != nil {
		ends.foreign = func(ctx context.Context, c *perftest.Conn) error {
			if c.Client() {
				return t.foreign(ctx, c, dev.dev, t.sink(o))
			}
			d, err := dev.again()
			if err != nil {
				return err
			}
			return t.foreign(ctx, c, d, report.Sink{})
		}
	}
	if role == server {
		return ends.run(role, hosts)
	}
	t.head(o, dev)
	return o.finish(profiled(t.flags.output.profile, func() error { return ends.run(role, hosts) }))
}

// ends chooses the device and the role. Without a device it is an empty choice.
func (t *pairTest) ends(hosts []string) (*chosen, mode, error) {
	dev, err := new(chosen), error(nil)
	if !t.noDevice {
		if dev, err = choose(t.flags.device.name); err != nil {
			return nil, 0, err
		}
	}
	role, err := dev.role(hosts, &t.flags.peer)
	return dev, role, err
}

// head writes what is measured, and on what.
func (t *pairTest) head(o *output, dev *chosen) {
	kind := "BW"
	if t.latency {
		kind = "Latency"
	}
	_ = report.Rule(o.text)
	o.printf("                    %s %s test\n", t.title, kind)
	if o.doc.Device != nil {
		o.printf(" Device         : %-16s Provider       : %s\n", o.doc.Device.Name, o.doc.Device.Provider)
	}
	t.setup(o)
	if o.doc.Device != nil {
		o.printf(" GID            : %s\n", t.flags.device.gidLine(o.doc.Device))
	}
	if dev.note != "" {
		o.printf(" %s\n", dev.note)
	}
	o.printf(" %s\n", t.times)
	_ = report.Rule(o.text)
}

// sink writes what the client measures.
func (t *pairTest) sink(o *output) report.Sink {
	current := 0
	return report.Sink{
		Sample: func(s *report.Sample) error {
			current++
			r := s.Row()
			err := o.row(r, true)
			if t.explain != nil && err == nil {
				err = t.explain(o.text, &r)
			}
			return err
		},
		Progress: func(done, total int64) {
			bytes := t.sizes[min(current, len(t.sizes)-1)]
			if t.latency {
				bytes = 0
			}
			o.progress(t.name, bytes, done, total)
		},
	}
}
