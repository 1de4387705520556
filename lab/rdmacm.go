package main

import (
	"strings"

	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

// byAddress are tests whose ends are connected by the connection manager.
func byAddress() (out []scenario) {
	port := 18700
	for _, t := range []struct{ test, flags string }{
		{"send lat", "-n 500 -s 1024"},
		{"send bw", "-n 500 -s 65536 -q 4 -m 1024 --retry 3 --rnr-timer 5 --tclass 104"},
		{"write lat", "-n 500 -s 8"},
		{"write bw", "-n 500 -s 65536 -q 4 --threads 2 -b"},
		{"write-imm bw", "-n 500 -s 4097 -e"},
		{"read bw", "-n 500 -s 65536"},
		{"atomic lat", "-n 500"},
		{"msg bw", "-n 500 -m 512 --retry 3 --tclass 104"},
		{"msg lat", "-n 500 -s 1000"},
		{"ps", "-n 200"},
		{"ps --workload training", "-n 200"},
	} {
		procs := bebench(port, t.flags, strings.Fields(t.test)...)
		for i, p := range procs {
			argv := strings.Join(p.Argv, " ")
			argv = strings.Replace(argv, " -x {gid}", " -R", 1)
			procs[i].Argv = strings.Fields(strings.Replace(argv, " 127.0.0.1", " {addr}", 1))
		}
		out = append(out, scenario{"bebench " + t.test + " -R", procs})
		port++
	}
	// The loopback address is not that of an RDMA device.
	procs := bebench(port, "-n 5", "write", "lat")
	for i, p := range procs {
		procs[i].Argv = strings.Fields(strings.Replace(strings.Join(p.Argv, " "), " -x {gid}", " -R", 1))
		procs[i].Exit, procs[i].Wants = 2, []string{"-R", "not on an interface with an active RDMA device"}
	}
	return append(out, scenario{"bebench -R by an address without a device", procs}, scenario{"bebench -R on a simulator", []plan.Proc{
		{Role: "bebench", Argv: []string{"bebench", "write", "lat", "-d", "sim:", "-R"}, Exit: 2, Wants: []string{"rdma_cm: not supported by sim:"}},
	}})
}
