package testprocess

import (
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
)

var (
	mu    sync.Mutex
	given = map[string]bool{}
)

// Addr gives an address of this host for a server in a process that is yet to start, and
// may be started there again. Nobody else takes it meanwhile: it is one of a loopback
// address of this test process alone, where the system has all of 127.0.0.0/8, as Linux
// has; and connections that processes make begin at 127.0.0.1.
func Addr(t testing.TB) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	pid := os.Getpid()
	own := fmt.Sprintf("127.%d.%d.%d:0", 64+pid>>16&63, pid>>8&255, pid&255)
	for {
		l, err := net.Listen("tcp", own)
		if err != nil {
			l, err = net.Listen("tcp", "127.0.0.1:0")
		}
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		l.Close()
		if !given[addr] {
			given[addr] = true
			return addr
		}
	}
}
