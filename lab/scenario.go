package main

import (
	"regexp"

	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

// commands are the module's programs that scenarios run, by their names.
var commands = []string{}

// scenario is a run of several processes that must all do as told.
type scenario struct {
	name  string
	procs []plan.Proc
}

// scenarios are run after the suites. No two may use the same TCP port: a closed
// connection keeps its port for a while.
var scenarios = []scenario{
	{"peer ibv_rc_pingpong with itself", []plan.Proc{
		{Role: "server", Port: 18601, Argv: []string{"ibv_rc_pingpong", "-d", "{device}", "-g", "{gid}", "-p", "18601", "-n", "100", "-c"}, Wants: []string{"100 iters in"}},
		{Role: "client", Argv: []string{"ibv_rc_pingpong", "-d", "{device}", "-g", "{gid}", "-p", "18601", "-n", "100", "-c", "127.0.0.1"}, Wants: []string{"100 iters in"}},
	}},
}

// pickScenarios gives the scenarios that the flags -suites and -scenarios ask for.
func pickScenarios(suites, asked string, pattern *regexp.Regexp) []scenario {
	if asked == "none" || asked == "" && suites != "" {
		return nil
	}
	var out []scenario
	for _, s := range scenarios {
		if pattern.MatchString(s.name) {
			out = append(out, s)
		}
	}
	return out
}

// scenarioItem is a scenario's item of the plan.
func scenarioItem(s scenario, o options) plan.Item {
	return plan.Item{Name: s.name, Procs: s.procs, Limit: o.limit}
}
