package main

import (
	"net"
	"strconv"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/doctor"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

// doctorFlags are those of doctor.
type doctorFlags struct {
	device  string
	json    string
	port    int
	timeout seconds
	serve   bool
	once    bool
}

func newDoctor(e *env) *cobra.Command {
	f := &doctorFlags{timeout: seconds(5 * time.Second)}
	c := &cobra.Command{
		Use: "doctor [HOST]", Short: "check the set-up, and say what mends it",
		Long: "Check everything of this machine's set-up that RDMA needs: kernel, device nodes, limits, ports, GIDs, MTU. Each line has a\n" +
			"severity (ok, hint, warning, error) and, below it, what mends it. At the end each device that can be used is tested.\n" +
			"With a host, on which `bebench doctor --serve` runs, the two are compared. The exit status is 2 if there is an error.",
		Args: atMostOneHost,
		RunE: func(_ *cobra.Command, hosts []string) error { return f.run(e, hosts) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.device, "ib-dev", "d", "", "look at this RDMA device only")
	fs.StringVar(&f.json, "json", "", "with -: write JSON to standard output instead")
	fs.IntVarP(&f.port, "port", "p", 18515, "TCP port of the other host's doctor")
	fs.Var(&f.timeout, "timeout", "time limit of each step between the two hosts")
	fs.BoolVar(&f.serve, "serve", false, "answer the doctors of other hosts, instead of checking")
	fs.BoolVarP(&f.once, "once", "1", false, "with --serve: answer one, then exit")
	return c
}

func (f *doctorFlags) check(hosts []string) error {
	err := firstOf(onlyStdout("doctor", f.json), inRange("port", f.port, 1, 65535))
	switch {
	case err != nil:
		return err
	case f.timeout < seconds(time.Second):
		return exit.Usagef("--timeout %v: at least 1s", time.Duration(f.timeout))
	case f.serve && len(hosts) > 0:
		return exit.Usagef("--serve and a host (%s) contradict each other: leave one of them out", hosts[0])
	case f.once && !f.serve:
		return exit.Usagef("-1 is for --serve: add it, or leave -1 out")
	}
	return nil
}

func (f *doctorFlags) run(e *env, hosts []string) error {
	if err := f.check(hosts); err != nil {
		return err
	}
	r, devs := doctor.Run(e.soft, doctor.ThisHost(), f.device, time.Now())
	mine := doctor.FactsOf(version(), devs)
	if f.serve {
		s := doctor.Server(mine, time.Duration(f.timeout))
		s.Once = f.once
		return serveClients(e, s, f.port, "doctor of", "answered")
	}
	if len(hosts) > 0 {
		r.Compare(e.soft, net.JoinHostPort(hosts[0], strconv.Itoa(f.port)), time.Duration(f.timeout), mine)
	}
	if f.json == "-" {
		if err := report.WriteJSON(e.stdout, r); err != nil {
			return err
		}
	} else if err := r.WriteText(e.stdout); err != nil {
		return errors.Wrap(err, "standard output")
	}
	return r.Err()
}
