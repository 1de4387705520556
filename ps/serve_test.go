package ps

import (
	"context"
	"sync"
	"testing"

	"github.com/byteexpress/byteexpress/archon"
)

// serve has a server serve an address. The end closes it, and waits.
func serve(t testing.TB, on archon.Transport, addr string, s *archon.Server) (end func()) {
	t.Helper()
	l, err := on.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(context.Background(), l) })
	return func() {
		s.Close()
		l.Close()
		wg.Wait()
	}
}
