// Package doctor looks at everything about a machine's set-up that keeps RDMA from
// working, or from working well, and says for each thing what it found and what mends
// it. It ends with a test of every device that can be used: two queue pairs that send
// to each other.
//
// All that it looks at comes through [Host], so that tests make broken machines. The
// checks and their names are described in docs/doctor.md.
package doctor
