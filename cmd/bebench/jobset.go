package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/psjob"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/verbs"
)

// jobSet runs parameter-server jobs over several transports in turn, so that a
// noisy machine troubles all alike.
type jobSet struct {
	e    *env
	o    *output
	open func() (verbs.Device, error)
	be   be.Config
	cm   bool // nodes find each other by rdma_cm
	jobs []*job
}

// job is one workload over one transport.
type job struct {
	*psjob.Driver
	name  string
	only  string          // if set, the one operation that is reported
	all   []psjob.At      // replicas; nil: there are none
	here  *psjob.Replicas // those in this process; nil: there are none
	close func() error
}

// transport opens the transport of a name, "be", "tcp" or, as "be", "auto". What is below
// counts only with ByteExpress.
func (s *jobSet) transport(name string) (open psjob.Open, counters func() map[string]int64) {
	if name == "tcp" {
		return psjob.OverTCP, nil
	}
	nodes := psjob.NewNodes(s.open, s.be, s.cm)
	return nodes.Open, nodes.Counters
}

// start brings up a job over each of the transports, "be" or "tcp", with shards in
// this process.
func (s *jobSet) start(cfg *psjob.Config, stream []uint64, names ...string) error {
	for _, name := range names {
		open, counters := s.transport(name)
		l, err := psjob.StartLocal(s.e.hard, cfg, name, open, stream)
		if err != nil {
			return errors.WithMessagef(err, "parameter server over %s", name)
		}
		l.Counters = counters
		s.jobs = append(s.jobs, &job{Driver: l.Driver, name: name, close: l.Close})
	}
	return nil
}

// over is a transport of transport, for a table of replicas.
func over(name string, open psjob.Open) psjob.Over {
	o := psjob.Over{Name: name, Fallback: name == overAuto}
	if name != "tcp" {
		o.RDMA = open
	}
	return o
}

// startReplicas is start with the replicas of a table, which have so long to come up.
func (s *jobSet) startReplicas(wait time.Duration, cfg *psjob.Config, stream []uint64, names ...string) error {
	for _, name := range names {
		open, counters := s.transport(name)
		l, err := psjob.StartLocalReplicas(s.e.hard, wait, cfg, over(name, open), stream)
		if err != nil {
			return errors.WithMessagef(err, "parameter server over %s", name)
		}
		l.Counters = counters
		s.jobs = append(s.jobs, &job{Driver: l.Driver, name: name, all: l.Replicas.At(), here: l.Replicas, close: l.Close})
	}
	return nil
}

// run lets the jobs take turns, each round in the other order, until more says of
// all that they are done, or somebody interrupts. more also bounds the requests of
// the turn; 0 is no bound.
func (s *jobSet) run(more func(*job) (goOn bool, atMost int)) error {
	defer context.AfterFunc(s.e.soft, func() {
		for _, j := range s.jobs {
			j.Stop()
		}
	})()
	for _, j := range s.jobs {
		_, atMost := more(j)
		if err := j.Warm(s.e.hard, atMost); err != nil {
			return err
		}
	}
	for round := 0; ; round++ {
		order := slices.Clone(s.jobs)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		// Whose time is not up when a round begins has a turn in it, so that all do the same.
		type turn struct {
			*job
			atMost int
		}
		var turns []turn
		for _, j := range order {
			if goOn, atMost := more(j); goOn {
				turns = append(turns, turn{j, atMost})
			}
		}
		if s.e.soft.Err() != nil {
			return control.ErrInterrupted
		}
		if len(turns) == 0 {
			break
		}
		for _, j := range turns {
			if s.e.soft.Err() != nil {
				return control.ErrInterrupted
			}
			if err := j.Turn(s.e.hard, j.atMost); err != nil {
				return err
			}
			s.o.progress("requests", 0, s.ops(), 0)
		}
	}
	for _, j := range s.jobs {
		if err := j.ReadBack(s.e.hard); err != nil {
			return err
		}
	}
	return nil
}

func (s *jobSet) ops() (sum int64) {
	for _, j := range s.jobs {
		sum += j.Ops()
	}
	return sum
}

// close ends the jobs, once.
func (s *jobSet) close() error {
	var first error
	for _, j := range s.jobs {
		if j.close == nil {
			continue
		}
		if err := j.close(); first == nil {
			first = err
		}
		j.close = nil
	}
	return first
}

// finish closes the jobs and writes rows and ratios, grouped by operation. err is
// what run said.
func (s *jobSet) finish(err error) error {
	var rows []report.Row
	var changes []changeRows
	var verified int64
	for _, j := range s.jobs {
		verified += j.Verified()
		for _, sample := range j.Samples() {
			if j.only == "" || j.only == sample.Op {
				rows = append(rows, sample.Row())
			}
			changes = append(changes, j.changeRows(sample))
		}
	}
	if closeErr := s.close(); err == nil {
		err = closeErr
	}
	slices.SortStableFunc(rows, func(a, b report.Row) int { return compareOps(a.Op, b.Op) })
	for i := range rows {
		judged := rows[i].Name == "be" || !slices.ContainsFunc(rows, func(r report.Row) bool { return r.Name == "be" })
		if rowErr := s.o.row(rows[i], judged); err == nil {
			err = rowErr
		}
	}
	for i := range rows {
		if i > 0 && rows[i].Op == rows[i-1].Op && rows[i-1].Name == "be" {
			s.o.doc.Ratios = append(s.o.doc.Ratios, report.Compare(&rows[i-1], &rows[i]))
		}
	}
	_ = report.Rule(s.o.text)
	if len(s.o.doc.Ratios) > 0 {
		s.o.printf(" Ratios: ByteExpress's value divided by TCP's. Below 1 is less time or CPU; ops/sec above 1 is more work done.\n")
	}
	for i := range s.o.doc.Ratios {
		_ = report.WriteRatio(s.o.text, &s.o.doc.Ratios[i])
	}
	for i := range rows {
		s.explain(&rows[i])
	}
	s.writeChanges(changes)
	if verified > 0 && err == nil {
		s.o.printf(" verified bit by bit: %d rows, every value\n", verified)
	}
	return err
}

// compareOps puts fetch before push.
func compareOps(a, b string) int {
	return slices.Index([]string{psjob.OpFetch, psjob.OpPush}, a) - slices.Index([]string{psjob.OpFetch, psjob.OpPush}, b)
}

// explain says from the counters what an operation over ByteExpress took.
func (s *jobSet) explain(r *report.Row) {
	c := r.Counters
	if c["requests"] == 0 || r.Ops == 0 {
		return
	}
	per := func(name string) string { return fmt.Sprintf("%.2f", float64(c[name])/float64(r.Ops)) }
	s.o.printf(" %s over %s, each: %s eager messages, %s large ones, %s doorbells for %s requests; stalls: credit %s, window %s, slots %s; registrations in all: %d\n",
		r.Op, r.Name, per("eager_messages"), per("rendezvous_messages"), per("doorbells"), per("requests"),
		per("credit_stalls"), per("window_stalls"), per("slot_stalls"), c["registrations"])
}
