package ps_test

import (
	"context"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/ps"
)

// TestSteadyUseDoesNotAllocate runs client and servers in this process, so both count.
func TestSteadyUseDoesNotAllocate(t *testing.T) { eachTransport(t, testSteadyUseDoesNotAllocate) }

func testSteadyUseDoesNotAllocate(t *testing.T, tr transport) {
	if raceEnabled {
		t.Skip("sync.Pool drops things at random under the race detector")
	}
	_, c := tr.start(t, 3, ps.Config{Dim: 16, LearningRate: 0.5})
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	keys, gradients := keyRange(300), make([]float32, 300*16)
	for name, once := range map[string]func(){
		"fetch": func() {
			f, err := c.Fetch(ctx, keys)
			if err != nil {
				t.Fatal(err)
			}
			f.Release()
		},
		"push": func() {
			if err := c.Push(ctx, keys, gradients); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for range 100 {
			once()
		}
		if n := testing.AllocsPerRun(500, once); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
