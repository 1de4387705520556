package runner

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// awaitListen returns when a socket of this host listens on the TCP port, when its
// process has exited, or at the end of ctx. It reads the kernel's tables, since
// a trial connection would count as a client.
func awaitListen(ctx context.Context, port int, exited <-chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for port != 0 && !listens(port) {
		select {
		case <-ctx.Done():
			return
		case <-exited:
			return
		case <-tick.C:
		}
	}
}

// listens looks for the port in state LISTEN (0A, proc(5)) in both tables.
func listens(port int) bool {
	suffix := fmt.Sprintf(":%04X", port)
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, _ := os.ReadFile(name)
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) > 3 && strings.HasSuffix(f[1], suffix) && f[3] == "0A" {
				return true
			}
		}
	}
	return false
}
