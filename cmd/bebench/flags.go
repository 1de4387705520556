package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/qp"
)

// deviceFlags choose the device and how to connect from it; letters and meanings
// are perftest's.
type deviceFlags struct {
	name   string
	port   int
	gid    int
	mtu    int
	ack    int
	sl     int
	tclass int
	retry  int
	rnr    int
	hops   int
	label  int
	cm     bool
}

func (d *deviceFlags) add(fs *pflag.FlagSet) {
	fs.StringVarP(&d.name, "ib-dev", "d", "", "RDMA device: rxe0, mlx5_0, sim: (default: the best, which devices --why explains, else sim:)")
	fs.IntVarP(&d.port, "ib-port", "i", 0, "port of the device; 0: the best, which devices --why explains")
	fs.IntVarP(&d.gid, "gid-index", "x", -1, "index of our GID, -1: the best one")
	fs.IntVarP(&d.mtu, "mtu", "m", 0, "path MTU in bytes: 256, 512, 1024, 2048 or 4096; 0: the port's")
	fs.IntVarP(&d.ack, "qp-timeout", "u", 14, "acknowledgement timeout: 4.096 us * 2^n, 1 to 31")
	fs.IntVarP(&d.sl, "sl", "S", 0, "service level, 0 to 7")
	fs.IntVar(&d.tclass, "tclass", 0, "traffic class, 0 to 255: DSCP * 4 on RoCE v2")
	fs.IntVar(&d.label, "flow-label", 0, "flow label, 0 to 1048575: spreads RoCE v2 over paths")
	fs.IntVar(&d.hops, "hop-limit", qp.DefaultHopLimit, "routers that packets may pass, 1 to 255")
	fs.IntVar(&d.retry, "retry", qp.DefaultRetryCount, "tries more when no acknowledgement comes, 1 to 7")
	fs.IntVar(&d.rnr, "rnr-timer", int(qp.DefaultRNRTimer), "wait of a peer that finds no receive posted, 1 to 31: 12 is 0.64 ms")
	fs.BoolVarP(&d.cm, "rdma_cm", "R", false, "connect by rdma_cm: the server's address chooses the way; both ends need it")
}

func (d *deviceFlags) check() error {
	return firstOf(
		inRange("ib-port", d.port, 0, 255), inRange("gid-index", d.gid, -1, 255), inRange("qp-timeout", d.ack, 1, 31),
		inRange("sl", d.sl, 0, 7), inRange("tclass", d.tclass, 0, 255), oneOf("mtu", d.mtu, 0, 256, 512, 1024, 2048, 4096),
		inRange("flow-label", d.label, 0, 1<<20-1), inRange("hop-limit", d.hops, 1, 255), inRange("retry", d.retry, 1, 7), inRange("rnr-timer", d.rnr, 1, 31),
		d.checkCM(),
	)
}

// unused refuses what would have no effect without a device. -d is taken: it may say that all
// is in this process.
func (d *deviceFlags) unused(set func(string) bool, without bool) error {
	for _, flag := range []string{"ib-port", "gid-index", "mtu", "qp-timeout", "sl", "tclass", "flow-label", "hop-limit", "retry", "rnr-timer"} {
		if without && set(flag) {
			return exit.Usagef("--%s is of an RDMA device, and --transport tcp uses none: leave one of them out", flag)
		}
	}
	return nil
}

// checkCM refuses what the connection manager decides.
func (d *deviceFlags) checkCM() error {
	switch {
	case !d.cm:
	case d.gid >= 0:
		return exit.Usagef("-R and -x contradict each other: with rdma_cm the server's address chooses the GID: leave one of them out")
	case d.label != 0 || d.hops != qp.DefaultHopLimit:
		return exit.Usagef("-R and --flow-label or --hop-limit contradict each other: rdma_cm chooses them: leave one of them out")
	}
	return nil
}

// peerFlags say how the two ends of a test find each other.
type peerFlags struct {
	port    int
	timeout seconds
	once    bool
	local   bool
}

func (p *peerFlags) add(fs *pflag.FlagSet) {
	fs.IntVarP(&p.port, "port", "p", 18515, "TCP port of the server")
	p.timeout = seconds(10 * time.Second)
	fs.Var(&p.timeout, "timeout", "time limit of each step between the two ends")
	fs.BoolVarP(&p.once, "once", "1", false, "server: one test, then exit with its status")
	fs.BoolVar(&p.local, "local", false, "both ends in this process (default on sim:)")
}

func (p *peerFlags) check(hosts []string, d *deviceFlags) error {
	err := firstOf(inRange("port", p.port, 1, 65535))
	switch {
	case err != nil:
		return err
	case p.timeout < seconds(time.Second):
		return exit.Usagef("--timeout %v: at least 1s", time.Duration(p.timeout))
	case p.local && len(hosts) > 0:
		return exit.Usagef("--local and a host (%s) contradict each other: leave one of them out", hosts[0])
	case p.local && d.cm:
		return exit.Usagef("--local and -R contradict each other: the ends in one process meet at the loopback address, where no RDMA device is: leave one of them out")
	case p.once && len(hosts) > 0:
		return exit.Usagef("-1 is for the server, and a host (%s) makes a client: leave one of them out", hosts[0])
	case p.once && p.local:
		return exit.Usagef("-1 is for a server, and --local has none: leave one of them out")
	}
	return nil
}

// seconds is a flag for a time: a number of seconds, as perftest has it, or a Go
// duration.
type seconds time.Duration

func (s *seconds) String() string {
	return strconv.FormatFloat(time.Duration(*s).Seconds(), 'g', -1, 64)
}
func (s *seconds) Type() string { return "seconds" }
func (s *seconds) Set(v string) error {
	d, err := time.ParseDuration(v)
	if f, notNumber := strconv.ParseFloat(v, 64); notNumber == nil {
		d, err = time.ParseDuration(fmt.Sprintf("%fs", f))
	}
	if err != nil || d <= 0 || d > 24*time.Hour {
		return fmt.Errorf("time %q: want seconds, as 10 or 0.5, up to a day", v)
	}
	*s = seconds(d)
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func inRange(flag string, n, low, high int) error {
	if n < low || n > high {
		return exit.Usagef("--%s %d: must be %d to %d", flag, n, low, high)
	}
	return nil
}

func oneOf(flag string, n int, choices ...int) error {
	for _, c := range choices {
		if n == c {
			return nil
		}
	}
	return exit.Usagef("--%s %d: must be one of %s", flag, n, strings.Trim(fmt.Sprint(choices), "[]"))
}

// args lists the flags in effect, for the document. What was left empty or 0 has no
// effect and is absent; false is there.
func args(c *cobra.Command, hosts []string) map[string]any {
	m := map[string]any{}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		s := f.Value.String()
		if !f.Changed && (s == "" || s == "0" || s == "0s" || s == "[]") {
			return
		}
		switch f.Value.Type() {
		case "bool":
			m[f.Name] = s == "true"
		case "int", "bytes", "uint64":
			n, _ := strconv.ParseInt(s, 10, 64)
			m[f.Name] = n
		case "float64", "seconds":
			n, _ := strconv.ParseFloat(s, 64)
			m[f.Name] = n
		default:
			m[f.Name] = s
		}
	})
	delete(m, "help")
	delete(m, "version")
	if len(hosts) > 0 {
		m["hosts"] = hosts
	}
	return m
}
