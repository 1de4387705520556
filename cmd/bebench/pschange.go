package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/psjob"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

// changes tells whether something happens in the run.
func (f *psFlags) changes() bool { return f.kill > 0 || f.rebalance > 0 }

func (f *psFlags) checkChange(c *cobra.Command, hosts []string) error {
	switch set := c.Flags().Changed; {
	case len(hosts) > f.mostHosts():
		return exit.Usagef("%d hosts, and %s would have no shard: give %d at most, or more --shards", len(hosts), hosts[f.mostHosts()], f.mostHosts())
	case f.kill > 0 && f.cfg.Replicas < 2:
		return exit.Usagef("--kill: must be with --replicas 2 or more, or no server of the shard is left")
	case f.kill > 0 && len(hosts) > 0:
		return exit.Usagef("--kill ends a server in this process, and a host (%s) is another: leave one of them out, and end a server there by hand", hosts[0])
	case f.kill > 0 && f.rebalance > 0:
		return exit.Usagef("--kill and --rebalance-after contradict each other, as all replicas have to be up for a change of the map: leave one of them out")
	case f.rebalance > 0 && f.cfg.Replicas == 0:
		return exit.Usagef("--rebalance-after: must be with --replicas 1 or more, which have a map")
	case set("rebalance-shards") && f.rebalance == 0:
		return exit.Usagef("--rebalance-shards is of --rebalance-after: give that as well")
	case f.rebalance > 0 && f.cfg.ThenShards == f.cfg.Shards:
		return exit.Usagef("--rebalance-shards %d: must not be --shards, or no key would move", f.cfg.ThenShards)
	case f.changes() && f.requests > 0:
		return exit.Usagef("-n and --kill or --rebalance-after contradict each other, since those are by time: give -D")
	case f.kill >= f.duration:
		return exit.Usagef("--kill %v: must be below -D, %v, or it would come after the run", &f.kill, &f.duration)
	case f.rebalance >= f.duration:
		return exit.Usagef("--rebalance-after %v: must be below -D, %v, or it would come after the run", &f.rebalance, &f.duration)
	}
	return nil
}

// drive runs the jobs: those in which something happens one after the other.
func (f *psFlags) drive(jobs *jobSet) error {
	if !f.changes() {
		return jobs.run(f.more)
	}
	for _, j := range jobs.jobs {
		j.Change = &psjob.Change{What: "the end of a server, with two leases,", After: time.Duration(f.kill), Do: func(ctx context.Context) error { return j.here.StopOne(ctx) }}
		if f.rebalance > 0 {
			j.Change = &psjob.Change{What: fmt.Sprintf("the change to %d shards", f.cfg.ThenShards), After: time.Duration(f.rebalance), Do: func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, rebalanceLimit)
				defer cancel()
				return f.cfg.Rebalance(ctx, j.all)
			}}
		}
		if err := (&jobSet{e: jobs.e, o: jobs.o, jobs: []*job{j}}).run(f.more); err != nil {
			return err
		}
	}
	return nil
}

// rebalanceLimit bounds how long a change of the map may take.
const rebalanceLimit = time.Minute

// changeRows are the results of an operation before, during and after a change.
type changeRows struct {
	rows   []report.Row
	what   string // happened
	took   time.Duration
	failed int64
}

func (j *job) changeRows(all *report.Sample) (c changeRows) {
	for _, sample := range j.Phases(all.Op) {
		c.rows = append(c.rows, sample.Row())
	}
	c.failed = all.Counters["failed_requests"]
	if j.Change != nil {
		c.what, c.took = j.Change.What, j.Change.Took()
	}
	return c
}

// writeChanges says how requests fared before, during and after what happened.
func (s *jobSet) writeChanges(list []changeRows) {
	for _, c := range list {
		if len(c.rows) == 0 {
			continue
		}
		s.o.doc.Rows = append(s.o.doc.Rows, c.rows...)
		s.o.printf(" %s over %s, 99%% of the requests in", c.rows[0].Op, c.rows[0].Name)
		for _, r := range c.rows {
			p99 := "-"
			if r.LatencyUS != nil {
				p99 = fmt.Sprintf("%.2f usec", r.LatencyUS.P99)
			}
			s.o.printf(" %s (of %d) %s;", p99, r.Ops, r.Phase)
		}
		took := "was not over"
		if c.took > 0 {
			took = fmt.Sprintf("took %.3f s", c.took.Seconds())
		}
		s.o.printf(" %s %s, and %d requests failed\n", c.what, took, c.failed)
	}
}
