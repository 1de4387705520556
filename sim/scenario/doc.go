// Package scenario has experiments on a simulated network as data: a file says who
// sends what to whom, over which network, with what faults, and which variants of
// the transport are compared; a [Job] runs one variant in virtual time, with the
// engines of production (package cluster).
//
//	s, err := scenario.Load("incast") // or scenario.Parse(file)
//	for _, job := range s.Jobs() {
//		run, err := job.Run(nil)
//		fmt.Println(run.Variant, run.Class("message").P99NS)
//	}
//
// Files are read strictly: what cannot be is an error that names the field, its
// value, its limits and what to do. The same file and seed give the same [Run], byte
// for byte, on every machine.
package scenario
