package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

// commands are the module's programs that scenarios run, by their names.
var commands = []string{"./cmd/bebench"}

// scenario is a run of several processes that must all do as told.
type scenario struct {
	name  string
	procs []plan.Proc
}

// scenarios are run after the suites. No two may use the same TCP port: a closed
// connection keeps its port for a while.
var scenarios = append([]scenario{
	{"ibv_rc_pingpong", twoEnds(18601, "100 iters in", "ibv_rc_pingpong", "-d", "{device}", "-g", "{gid}", "-n", "100")},
	{"bebench devices", []plan.Proc{
		{Role: "bebench", Argv: []string{"bebench", "devices"}, Wants: []string{"{device}"}},
	}},
	{"bebench doctor", []plan.Proc{
		{Role: "bebench", Argv: []string{"bebench", "doctor"}, Wants: []string{"loop {device}", "two queue pairs sent 64 bytes", "0 errors"}},
	}},
	{"bebench doctor of two hosts", []plan.Proc{
		{Role: "server", Port: 18602, Argv: []string{"bebench", "doctor", "--serve", "-1", "-p", "18602"}, Wants: []string{"answered"}},
		{Role: "client", Argv: []string{"bebench", "doctor", "-p", "18602", "127.0.0.1"}, Wants: []string{"tcp 127.0.0.1:18602", "peer-gid", "0 errors"}},
	}},
	{"bebench unknown device", []plan.Proc{
		{Role: "bebench", Argv: []string{"bebench", "write", "lat", "-d", "nodevice9", "127.0.0.1"}, Exit: 2, Wants: []string{"nodevice9"}},
	}},
	{"bebench send lat", bebench(18611, "-n 500 -s 1024", "send", "lat")},
	{"bebench send bw", bebench(18612, "-n 500 -s 65536", "send", "bw")},
	{"bebench write lat", bebench(18613, "-n 500 -s 8", "write", "lat")},
	{"bebench write bw", bebench(18614, "-n 500 -s 65536", "write", "bw")},
	{"bebench write-imm bw", bebench(18615, "-n 500 -s 4097 -e", "write-imm", "bw")},
	{"bebench read bw", bebench(18616, "-n 500 -s 65536", "read", "bw")},
	{"bebench atomic lat", bebench(18617, "-n 500", "atomic", "lat")},
	{"bebench msg bw", bebench(18621, "-n 500", "msg", "bw")},
	{"bebench msg lat", bebench(18622, "-n 500 -s 1000", "msg", "lat")},
	{"bebench msg bw, 16 sockets", bebench(18623, "-n 100 -s 100000 --sockets 16 -b", "msg", "bw")},
	{"bebench ps inference", bebench(18624, "-n 200", "ps")},
	{"bebench ps training", bebench(18625, "-n 200 --workload training", "ps")},
}, slices.Concat(againstPerftest(), byAddress())...)

// patience is the option, of bebench as of perftest, for an acknowledgement timer of 4 s:
// what is late in a starved guest is then not sent again, where rxe loses its way
// (testdev.PhantomPacket). Nothing is lost there.
const patience = " -u 20"

// bebench is a server for one test and its client, which verifies all data.
func bebench(port int, flags string, command ...string) []plan.Proc {
	argv := append([]string{"bebench"}, command...)
	argv = append(argv, "-d", "{device}", "-x", "{gid}", "--verify")
	argv = append(argv, strings.Fields(flags+patience+" --timeout 60")...) // of a sign of life from the other
	procs := twoEnds(port, "", argv...)
	procs[0].Argv = append(procs[0].Argv, "-1")
	procs[1].Argv = append(procs[1].Argv, "--json", "-")
	procs[1].Wants = []string{`"schema": "bebench/1"`, `"verified": true`}
	return procs
}

// twoEnds is a server and a client with the same arguments; the client gets the
// server's address as one more. Both must exit with 0, and their output have what
// is wanted.
func twoEnds(port int, wants string, argv ...string) []plan.Proc {
	argv = append(argv, "-p", strconv.Itoa(port))
	client := append(slices.Clone(argv), "127.0.0.1")
	return []plan.Proc{
		{Role: "server", Port: port, Argv: argv, Wants: []string{wants}},
		{Role: "client", Argv: client, Wants: []string{wants}},
	}
}

// pickScenarios gives the scenarios that the flags -suites and -scenarios ask for.
func pickScenarios(suites, asked string, pattern *regexp.Regexp) []scenario {
	if asked == "none" || asked == "" && suites != "" {
		return nil
	}
	return matching(scenarios, pattern)
}

// matching gives the scenarios whose name matches.
func matching(all []scenario, pattern *regexp.Regexp) (out []scenario) {
	for _, s := range all {
		if pattern.MatchString(s.name) {
			out = append(out, s)
		}
	}
	return out
}

// scenarioItem is a scenario's item of the plan.
func scenarioItem(s scenario, o options, device string) plan.Item {
	it := plan.Item{Name: s.name, Limit: o.limit}
	for _, p := range s.procs {
		p.Wants = slices.Clone(p.Wants)
		for i := range p.Wants {
			p.Wants[i] = strings.ReplaceAll(p.Wants[i], "{device}", device)
		}
		it.Procs = append(it.Procs, p)
	}
	return it
}

// peersOf are the peers that scenarios run.
func peersOf(scenarios []scenario) (out []tool) {
	for _, s := range scenarios {
		for _, p := range s.procs {
			if i := slices.IndexFunc(peers, func(t tool) bool { return t.program == p.Argv[0] }); i >= 0 {
				out = append(out, peers[i])
			}
		}
	}
	return out
}
