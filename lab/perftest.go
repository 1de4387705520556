package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

// againstPerftest are tests with bebench at one end and the perftest program of the
// same test at the other, in both roles. Events are tried with bandwidth only: with
// them ib_send_lat overflows its own completion queue of one entry on rxe, against
// itself too, and both ends wait for ever.
func againstPerftest() (out []scenario) {
	port := 18630
	for _, t := range []struct {
		test  string // bebench's words
		qps   int
		iters int
		size  int
		flags string // for both
	}{
		{"send bw", 1, 500, 65536, ""},
		{"send bw", 3, 200, 4096, "-q 3 -e"},
		{"send lat", 1, 500, 8, ""},
		{"write bw", 1, 500, 65536, ""},
		{"write bw", 4, 200, 1000, "-q 4"},
		{"write lat", 1, 500, 8, ""},
		{"read bw", 1, 500, 65536, ""},
		{"read bw", 3, 200, 4096, "-q 3 -e"},
		{"read lat", 1, 500, 4096, ""},
		{"atomic bw", 1, 500, 8, ""},
		{"atomic lat", 1, 500, 8, ""},
	} {
		theirs := "ib_" + strings.ReplaceAll(t.test, " ", "_")
		flags := fmt.Sprintf("-d {device} -x {gid} -n %d %s", t.iters, t.flags+patience)
		if !strings.HasPrefix(t.test, "atomic") {
			flags += " -s " + strconv.Itoa(t.size)
		}
		// perftest writes its rows so, and its one-sided servers know nothing.
		row := fmt.Sprintf(" %-7d    %-10d", t.size, t.iters*t.qps)
		if strings.HasSuffix(t.test, "lat") {
			row = fmt.Sprintf(" %-7d %d ", t.size, t.iters)
		}
		serverRow := row
		if t.test == "read lat" || t.test == "atomic lat" {
			serverRow = ""
		}
		name := strings.TrimSpace(theirs + " " + t.flags)
		for _, oursFirst := range []bool{true, false} {
			ours := plan.Proc{Role: "bebench", Argv: strings.Fields("bebench " + t.test + " --peer perftest " + flags)}
			other := plan.Proc{Role: theirs, Argv: strings.Fields(theirs + " -F " + flags)}
			s := scenario{}
			if oursFirst {
				s.name = name + ", bebench as server"
				ours.Argv = append(ours.Argv, "-1")
				other.Wants = []string{row}
				s.procs = asPair(port, ours, other)
			} else {
				s.name = name + ", bebench as client"
				ours.Argv = append(ours.Argv, "--json", "-")
				ours.Wants = []string{`"schema": "bebench/1"`, fmt.Sprintf(`"ops": %d,`, t.iters*t.qps), fmt.Sprintf(`"size_bytes": %d,`, t.size)}
				other.Wants = []string{serverRow}
				s.procs = asPair(port, other, ours)
			}
			out = append(out, s)
			port++
		}
	}
	return out
}

// asPair makes a server and its client of two processes.
func asPair(port int, server, client plan.Proc) []plan.Proc {
	p := strconv.Itoa(port)
	server.Port = port
	server.Argv = append(server.Argv, "-p", p)
	client.Argv = append(client.Argv, "-p", p, "127.0.0.1")
	return []plan.Proc{server, client}
}
