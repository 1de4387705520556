// Package core breaks contract 1.
package core

import (
	crand "crypto/rand"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"syscall"
	clock "time"
)

// X is documented.
var X = rand.IntN(2)

func run(a netip.Addr, d clock.Duration) {
	go run(a, d)
	clock.Sleep(d)
	_ = clock.Now()
	_, _ = syscall.EBUSY, syscall.Getpid
	_, _, _ = crand.Reader, net.IP{}, exec.Cmd{}
}
