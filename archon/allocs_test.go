package archon_test

import (
	"context"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// TestCallsDoNotAllocate runs calls in this process, so both sides count.
func TestCallsDoNotAllocate(t *testing.T) { eachTransport(t, testCallsDoNotAllocate) }

func testCallsDoNotAllocate(t *testing.T, tr transport) {
	if raceEnabled {
		t.Skip("sync.Pool drops things at random under the race detector")
	}
	c := tr.connect(t, archon.EchoServer(t, archon.ServerConfig{}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for _, m := range []archon.Method{archon.EchoMethod, archon.WorkerMethod} {
		for _, size := range []int{64, 64 << 10} {
			once := func() {
				req, err := c.Alloc(size)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := c.Call(ctx, m, req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Release()
			}
			for range 100 {
				once()
			}
			if n := testing.AllocsPerRun(1000, once); n != 0 {
				t.Errorf("%v of %d bytes: %v allocations a call", m, size, n)
			}
		}
	}
}

// The control: what the test above counts, it does count.
func TestAllocationsAreCounted(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops things at random under the race detector")
	}
	s, m := archon.NewServer(archon.ServerConfig{}), archon.NewMethod("test.Context")
	s.HandleInline(m, func(call *archon.ServerCall) error { return call.Context().Err() })
	c := transport{"tcp", archon.TCP{}, archon.TCP{}}.connect(t, s)
	n := testing.AllocsPerRun(100, func() {
		req, _ := c.Alloc(1)
		resp, err := c.Call(context.Background(), m, req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Release()
	})
	if n == 0 {
		t.Error("a handler that makes a context counts as no allocation")
	}
}
