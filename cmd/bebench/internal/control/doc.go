// Package control is the TCP connection on which the two ends of a benchmark
// agree: who they are, with which options, and when each step begins and ends.
//
// Every message is a 4-byte big-endian length and JSON that names its step. Each
// step has a time limit; an error names the step, the peer and the limit. The
// first message of both sides is a hello that carries the protocol's version and
// the options that must be equal.
package control
