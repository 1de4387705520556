package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/byteexpress/byteexpress/internal/lab/judge"
	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

// compareRounds is how often each case of -compare is run, at either program in turn.
const compareRounds = 5

// comparedCase is one case of -compare: a test and a message size.
type comparedCase struct {
	test  string // bebench's words
	size  int
	iters int
}

// comparedCases run for about a second each on an emulated machine.
var comparedCases = []comparedCase{
	{"write lat", 8, 2000}, {"write lat", 4096, 2000}, {"write lat", 65536, 200}, {"write lat", 1 << 20, 25},
	{"write bw", 8, 5000}, {"write bw", 4096, 2000}, {"write bw", 65536, 500}, {"write bw", 1 << 20, 64},
}

// The two programs that are compared; each talks to itself.
const (
	ours   = "bebench"
	theirs = "perftest"
)

// counted is the round in which the client's system calls are counted instead of its
// time: strace stops it at each.
const counted = compareRounds + 1

// name is the scenario's.
func (c comparedCase) name(round int, program string) string {
	if round == counted {
		return fmt.Sprintf("%s of %d bytes with %s, counted", c.test, c.size, program)
	}
	return fmt.Sprintf("%s of %d bytes with %s, round %d", c.test, c.size, program, round)
}

// comparison are the runs of -compare, those of the two programs interleaved.
func comparison() (out []scenario) {
	port := 18700
	for round := 1; round <= counted; round++ {
		for _, c := range comparedCases {
			for _, program := range []string{ours, theirs} {
				flags := fmt.Sprintf(" -d {device} -x {gid} -n %d -s %d", c.iters, c.size) + patience
				server := plan.Proc{Role: "server", Argv: strings.Fields("bebench " + c.test + flags + " -1")}
				client := plan.Proc{Role: "client", Argv: strings.Fields("bebench " + c.test + flags + " --json-stream")}
				if program == theirs {
					server.Argv = strings.Fields("ib_" + strings.ReplaceAll(c.test, " ", "_") + flags + " -F")
					client.Argv = slices.Clone(server.Argv)
				}
				if round == counted {
					client.Argv = append([]string{"strace", "-f", "-c"}, client.Argv...)
				}
				out = append(out, scenario{c.name(round, program), asPair(port, server, client)})
				port++
			}
		}
	}
	return out
}

// measured finds the result in what a client wrote: the typical latency in
// microseconds, or the average bandwidth in 2^20 bytes a second.
func (c comparedCase) measured(program string, output []string) (float64, bool) {
	latency := strings.HasSuffix(c.test, "lat")
	for _, line := range output {
		line, ok := strings.CutPrefix(line, "client: ")
		if !ok {
			continue
		}
		if program == ours {
			var doc struct {
				Row struct {
					Bytes   float64               `json:"bytes_per_s"`
					Latency struct{ P50 float64 } `json:"latency_us"`
				}
			}
			if json.Unmarshal([]byte(line), &doc) != nil {
				continue
			}
			if latency && doc.Row.Latency.P50 > 0 {
				return doc.Row.Latency.P50, true
			}
			if !latency && doc.Row.Bytes > 0 {
				return doc.Row.Bytes / (1 << 20), true
			}
			continue
		}
		// #bytes #iterations t_min t_max t_typical ..., or ... BW peak BW average
		f, at := strings.Fields(line), 3
		if latency {
			at = 4
		}
		if len(f) > at && f[0] == strconv.Itoa(c.size) && f[1] == strconv.Itoa(c.iters) {
			v, err := strconv.ParseFloat(f[at], 64)
			return v, err == nil
		}
	}
	return 0, false
}

// calls is how many system calls strace's summary counts for each message.
func (c comparedCase) calls(output []string) (float64, bool) {
	for _, line := range output {
		// % time, seconds, usecs/call, calls, errors if there are any, "total"
		f := strings.Fields(line)
		if n := len(f); n >= 5 && f[0] == "client:" && f[n-1] == "total" {
			v, err := strconv.ParseFloat(f[4], 64)
			return v / float64(c.iters), err == nil
		}
	}
	return 0, false
}

// writeComparison writes the table of medians and how much better we are: above 1,
// bebench has more bandwidth or less latency. Calls are system calls of the client for
// each message, set-up and end included.
func writeComparison(w io.Writer, results []judge.Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "test\tbytes\tunit\t%s\t%s\tratio\trange of %[1]s\trange of %[2]s\tcalls of %[1]s\tof %[2]s\n", ours, theirs)
	for _, c := range comparedCases {
		var values [2][]float64
		var calls [2]float64
		for i, program := range []string{ours, theirs} {
			for round := 1; round <= compareRounds; round++ {
				at := slices.IndexFunc(results, func(r judge.Result) bool { return r.Name == c.name(round, program) })
				if at < 0 {
					continue
				}
				v, ok := c.measured(program, results[at].Output)
				if !ok {
					return fmt.Errorf("%s: no result in its output", results[at].Name)
				}
				if !math.IsInf(v, 0) { // perftest found no clock rate: it has no result
					values[i] = append(values[i], v)
				}
			}
			slices.Sort(values[i])
			if at := slices.IndexFunc(results, func(r judge.Result) bool { return r.Name == c.name(counted, program) }); at >= 0 {
				calls[i], _ = c.calls(results[at].Output)
			}
		}
		if len(values[0]) == 0 || len(values[1]) == 0 {
			continue // left out by -scenarios
		}
		o, p := values[0][len(values[0])/2], values[1][len(values[1])/2]
		unit, ratio := "2^20 bytes/s", o/p
		if strings.HasSuffix(c.test, "lat") {
			unit, ratio = "us, typical", p/o
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%.2f\t%.2f\t%.3f\t%s\t%s\t%.2f\t%.2f\n", c.test, c.size, unit, o, p, ratio, span(values[0]), span(values[1]), calls[0], calls[1])
	}
	return t.Flush()
}

// span is the least and the greatest of sorted values.
func span(v []float64) string { return fmt.Sprintf("%.4g to %.4g", v[0], v[len(v)-1]) }
