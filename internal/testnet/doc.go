// Package testnet is a network of hosts inside the process, for tests: byte streams as of
// TCP, with latency, lost packets, hosts that stop and processes that die. In a bubble of
// testing/synctest it runs in virtual time. A latency follows from the seed, the two
// hosts and the moment alone, so that it does not depend on which of several goroutines
// writes first at that moment.
package testnet
