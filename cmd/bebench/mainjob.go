package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/psjob"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/verbs"
)

// mainJob is what bebench does without arguments: the parameter-server job over
// ByteExpress on the simulator and over TCP, in turn.
type mainJob struct {
	output   outputFlags
	duration seconds
}

// mainJobTime keeps the whole job, verification included, well under a minute.
const mainJobTime = 30 * time.Second

func newMainJob(e *env) *cobra.Command {
	j := &mainJob{duration: seconds(mainJobTime)}
	c := &cobra.Command{
		Use:   "bebench",
		Short: "measure ByteExpress, and what is below it, and check that the bytes are right",
		Long: "Without a command: a parameter server of 4 shards in this process, over ByteExpress on the embedded\n" +
			"simulator and over TCP loopback in turn, with the same requests; every value is verified.",
		Args: noSuchCommand, DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, _ []string) error { return j.run(e, c) },
	}
	c.Flags().SortFlags = false
	c.Flags().VarP(&j.duration, "duration", "D", "how long the whole job takes, in seconds")
	j.output.add(c.Flags())
	return c
}

func (j *mainJob) run(e *env, c *cobra.Command) error {
	if err := j.output.check(); err != nil {
		return err
	}
	if j.output.interval > 0 {
		return exit.Usagef("--interval: this job has no results before its end: leave it out")
	}
	if l := j.output.limits; l.minBW+l.minRate > 0 {
		return exit.Usagef("--min-bw and --min-msgrate are for a single test: name one")
	}
	o := newOutput(e, c, nil, &j.output, report.JobTable)
	o.doc.Command = "main"
	o.doc.Device = &report.Device{Name: simPrefix, Provider: "sim"}
	fetch, push := psjob.Defaults(psjob.Inference), psjob.Defaults(psjob.Training)
	fetch.SliceBytes = j.sliceBytes(fetch.SliceBytes)
	push.SliceBytes = j.sliceBytes(push.SliceBytes)
	_ = report.Rule(o.text)
	o.printf(" Parameter server, %d shards and %d workers in this process, %d requests outstanding.\n", fetch.Shards, fetch.Workers, fetch.Workers*fetch.Outstanding)
	o.printf(" be:  ByteExpress on sim:, a simulated NIC in this process: no RDMA hardware is measured.\n")
	o.printf(" tcp: the same calls over TCP loopback. Both take turns and get the same requests.\n")
	o.printf(" fetch: inference, %d B to %d KB of rows a request; push: training, %d to %d KB.\n", fetch.MinBytes, fetch.MaxBytes>>10, push.MinBytes>>10, push.MaxBytes>>10)
	_ = report.Rule(o.text)
	jobs := &jobSet{e: e, o: o, open: openSim}
	err := jobs.start(&fetch, psjob.Synthetic(fetch.Rows, fetch.Seed), "be", "tcp")
	if err == nil {
		err = jobs.start(&push, psjob.Synthetic(push.Rows, push.Seed), "be", "tcp")
	}
	for _, job := range jobs.jobs[min(2, len(jobs.jobs)):] {
		job.only = psjob.OpPush // its fetches check what was pushed
	}
	end := time.Now().Add(time.Duration(j.duration))
	if err == nil {
		err = profiled(j.output.profile, func() error {
			return jobs.run(func(j *job) (bool, int) { return j.Ops() == 0 || time.Now().Before(end), 0 })
		})
	}
	return o.finish(jobs.finish(err))
}

// sliceBytes makes the slices of a short job shorter than the usual ones, so that
// there are several.
func (j *mainJob) sliceBytes(usual int) int {
	share := float64(j.duration) / float64(mainJobTime/3)
	return max(1<<20, min(usual, int(share*float64(usual))))
}

func openSim() (verbs.Device, error) { return provider.Open(simPrefix) }
