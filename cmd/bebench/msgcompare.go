package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/msgtest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/size"
	"github.com/byteexpress/byteexpress/verbs"
)

// compareFlags are those of the comparison of message transports on one machine.
type compareFlags struct {
	device deviceFlags
	nodeFlags
	output outputFlags

	sizes    []string
	sockets  []int
	over     []string
	also     []string
	duration seconds
	rounds   int
	depth    int
	verify   bool
	tcp      size.OrZero // bytes of a TCP connection's send buffer

	bytes    []int // sizes, read
	programs []program
}

func newMsgCompare(e *env) *cobra.Command {
	f := &compareFlags{duration: seconds(300 * time.Millisecond)}
	c := &cobra.Command{
		Use: "compare", Short: "messages over ByteExpress, TCP loopback and a plain copy, in turn",
		Long: "Messages between two ends in this process over ByteExpress, over TCP loopback and by a plain copy of the bytes, in turn,\n" +
			"for each size and number of sockets; with --also over another program's transport too. A line has the medians of the\n" +
			"rounds, and the medians of the ratios that ByteExpress had to its neighbour in each round.",
		Args: noSuchCommand, DisableFlagsInUseLine: true, RunE: func(c *cobra.Command, _ []string) error { return f.run(e, c) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.device.add(fs)
	fs.StringSliceVarP(&f.sizes, "sizes", "s", []string{"64", "4K", "64K", "1M", "16M"}, "message `sizes` in bytes; K, M, G are powers of 1024")
	fs.IntSliceVar(&f.sockets, "sockets", []int{1, 64}, "`numbers` of sockets")
	fs.StringSliceVar(&f.over, "over", []string{msgtest.OverCopy, msgtest.OverBE, msgtest.OverTCP}, "what to measure")
	fs.StringArrayVar(&f.also, "also", nil, "also measure another `NAME=PROGRAM`: it is run with bw or lat, --size, --sockets, --depth and --seconds, and writes one row as in --json")
	fs.VarP(&f.duration, "duration", "D", "how long each measurement takes, in seconds")
	fs.IntVar(&f.rounds, "rounds", 3, "times that each measurement is made")
	fs.IntVarP(&f.depth, "tx-depth", "t", 16, "messages posted on a socket, but of all sockets no more than 4 MiB where that leaves each one (of a single socket two)")
	fs.BoolVar(&f.verify, "verify", false, "check every byte at the receiver, and not only length and number of each message")
	fs.Var(&f.tcp, "tcp-buffer", "send buffer of each TCP connection in bytes, at least what the system wants: so no more than about that is under way, as over be no more than is posted; 0: the system's")
	f.addNode(fs)
	f.output.addFiles(fs)
	fs.StringVar(&f.output.progress, "progress", "auto", "`when` to show progress on standard error: auto (on a terminal), always, never")
	return c
}

func (f *compareFlags) check(set func(string) bool) error {
	err := firstOf(f.device.check(), f.output.check(), inRange("rounds", f.rounds, 1, 1000), inRange("tx-depth", f.depth, 1, 1<<16), f.nodeFlags.check(set),
		contradict(f.device.cm, "-R and a comparison inside one process contradict each other"))
	if err != nil {
		return err
	}
	for _, s := range f.sizes {
		n, err := size.Parse(s)
		if err != nil {
			return exit.Usagef("--sizes: %v", err)
		}
		f.bytes = append(f.bytes, n)
	}
	for _, n := range f.sockets {
		if err := inRange("sockets", n, 1, 1<<16); err != nil {
			return err
		}
		for _, size := range f.bytes {
			if size > mostBytes/n {
				return exit.Usagef("--sizes %d and --sockets %d: a message posted on each socket would be %d MiB, at most %d: give fewer of either", size, n, size>>10*n>>10, mostBytes>>20)
			}
		}
	}
	for _, name := range f.over {
		switch name {
		case msgtest.OverBE, msgtest.OverTCP, msgtest.OverCopy:
		default:
			return exit.Usagef("--over %q: want be, tcp or copy", name)
		}
	}
	f.programs, err = parsePrograms(f.also)
	return err
}

// mostBytes is how many bytes one message of each socket may have together: twice what
// the largest of the usual sizes has on the most of the usual sockets. An end takes
// several times that.
const mostBytes = 2 << 30

// budget is how many bytes are under way of large messages: what the caches of most
// cores together hold.
const budget = 4 << 20

// depthOf is how many messages are posted on each socket.
func (f *compareFlags) depthOf(size, sockets int) int {
	least := 1
	if sockets == 1 {
		least = 2 // else nothing overlaps
	}
	return min(f.depth, max(least, budget/(size*sockets)))
}

// params are those of one measurement over be or tcp.
func (f *compareFlags) params(over string, latency bool, size, sockets int) *msgtest.Params {
	p := &msgtest.Params{
		Transport: over, Latency: latency, Sizes: []int{size}, Duration: time.Duration(f.duration), Sockets: sockets, Depth: f.depthOf(size, sockets),
		Verify: f.verify, Seed: 1, TCPBuffer: int(f.tcp), Node: f.device.nodeConfig(),
	}
	p.Warm = 2 * p.Depth
	f.apply(p)
	// A receiver that falls behind gets no more into its memory than is posted at a time.
	p.Node.Backlog = min(p.Node.Backlog, max(p.Depth, budget/(size*sockets)))
	return p
}

// turn is one measurement that has its turn in each round.
type turn struct {
	name, op      string
	size, sockets int
	measure       func() (*report.Sample, *report.Row, error)
}

// turns lists the measurements of a round in order: what is compared is next to each
// other.
func (f *compareFlags) turns(e *env, dev *chosen) (all []turn) {
	for _, sockets := range f.sockets {
		for _, size := range f.bytes {
			for _, op := range []string{report.OpBandwidth, report.OpLatency} {
				latency := op == report.OpLatency
				for _, over := range f.over {
					t := turn{name: over, op: op, size: size, sockets: sockets}
					switch {
					case over != msgtest.OverCopy:
						t.measure = func() (*report.Sample, *report.Row, error) {
							s, err := f.between(e, dev, f.params(over, latency, size, sockets))
							return s, nil, err
						}
					case latency:
						continue
					default:
						t.measure = func() (*report.Sample, *report.Row, error) {
							s, err := msgtest.Copy(size, sockets*f.depthOf(size, sockets), time.Duration(f.duration), e.soft.Done())
							return s, nil, err
						}
					}
					all = append(all, t)
				}
				for _, p := range f.programs {
					all = append(all, turn{p.name, op, size, sockets, func() (*report.Sample, *report.Row, error) {
						r, err := p.run(e, op, size, sockets, f.depthOf(size, sockets), time.Duration(f.duration))
						return nil, r, err
					}})
				}
			}
		}
	}
	return all
}

// between measures between two ends in this process.
func (f *compareFlags) between(e *env, dev *chosen, p *msgtest.Params) (sample *report.Sample, err error) {
	ends := twoEnds{
		e: e, peer: &peerFlags{timeout: seconds(time.Minute)}, hello: control.NewHello("msg compare", p.Agreed()),
		serve: func(ctx context.Context, conn *control.Conn) error {
			d, err := dev.again()
			if err != nil {
				conn.Fail(err)
				return err
			}
			return msgtest.Run(e.soft, ctx, conn, d, p, false, report.Sink{})
		},
		measure: func(ctx context.Context, conn *control.Conn) error {
			var d verbs.Device
			d, err := dev.again()
			if err != nil {
				return err
			}
			return msgtest.Run(e.soft, ctx, conn, d, p, true, report.Sink{Sample: func(s *report.Sample) error {
				sample = s
				return nil
			}})
		},
	}
	err = ends.local()
	return sample, err
}

func (f *compareFlags) run(e *env, c *cobra.Command) error {
	if err := f.check(c.Flags().Changed); err != nil {
		return err
	}
	dev, err := choose(f.device.name)
	if err != nil {
		return err
	}
	o := newOutput(e, c, nil, &f.output, func(w io.Writer) *report.Table { return report.JobTable(w) })
	if o.doc.Device, err = dev.describe(&f.device); err != nil {
		return err
	}
	_ = report.Rule(o.text)
	o.printf("                    Messages compared\n")
	o.printf(" Device         : %-16s Provider       : %s\n", o.doc.Device.Name, o.doc.Device.Provider)
	o.printf(" Node           : %s\n", f.line(&msgtest.Params{}))
	o.printf(" Rounds         : %d of %v a measurement; both ends are in one process, which the CPU time is of\n", f.rounds, time.Duration(f.duration))
	if f.tcp > 0 {
		o.printf(" TCP            : send buffers of %d bytes, or the least that the system allows\n", f.tcp)
	}
	o.printf(" Latency is half a round trip. copy: one goroutine that copies as many bytes, with the buffers that be has posted.\n")
	_ = report.Rule(o.text)
	cmp := report.NewComparison(msgtest.OverBE)
	err = profiled(f.output.profile, func() error { return f.rows(e, o, dev, cmp) })
	o.doc.Ratios = cmp.Ratios()
	o.clearBar()
	for _, r := range cmp.Rows() {
		o.doc.Rows = append(o.doc.Rows, r)
		if f.output.stream {
			if streamErr := o.doc.Stream(o.stdout, &r); err == nil {
				err = streamErr
			}
		}
	}
	if writeErr := cmp.Write(o.text); err == nil {
		err = writeErr
	}
	return o.finish(err)
}

// rows makes all measurements.
func (f *compareFlags) rows(e *env, o *output, dev *chosen, cmp *report.Comparison) error {
	turns := f.turns(e, dev)
	for i := range f.rounds {
		for k := range turns {
			t := &turns[k]
			if e.soft.Err() != nil {
				return control.ErrInterrupted
			}
			s, r, err := t.measure()
			if err != nil {
				return fmt.Errorf("%s over %s, %d bytes, %d sockets: %w", t.op, t.name, t.size, t.sockets, err)
			}
			if r == nil {
				row := s.Row()
				r = &row
			}
			r.Name, r.Op, r.SizeBytes, r.Sockets = t.name, t.op, t.size, t.sockets
			cmp.Add(*r)
			o.progress("measurements", 0, int64(i*len(turns)+k+1), int64(f.rounds*len(turns)))
		}
	}
	return nil
}
