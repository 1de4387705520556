//go:build !race

package be

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// costBatch is how many messages are handed over, or arrive, before the worker's turn.
const costBatch = 16

// sending gives a function that has n messages of size bytes allocated, posted, sent,
// and freed.
func (d *instant) sending(size int) func(n int) {
	node := d.sock.Node()
	var bufs [costBatch][]byte
	var done [costBatch]func(error)
	for i := range done {
		done[i] = func(err error) {
			if err != nil {
				panic(err)
			}
			node.Free(bufs[i])
			bufs[i] = nil
		}
	}
	return func(n int) {
		for i := range n {
			b, err := node.Alloc(size)
			if err != nil {
				panic(err)
			}
			bufs[i] = b
			if err := d.sock.Post(b, done[i]); err != nil {
				panic(err)
			}
		}
		d.turn()
		for i := range n {
			if bufs[i] != nil {
				panic("a message was not sent")
			}
		}
	}
}

// receiving gives a function that has n messages of size bytes arrive, taken by a
// callback or by Recv, and freed.
func (d *instant) receiving(size int, callback bool) func(n int) {
	node, ctx, got := d.sock.Node(), context.Background(), 0
	take := func(b []byte) {
		if len(b) != size {
			panic("a message of another length")
		}
		node.Free(b)
		got++
	}
	if callback {
		d.sock.OnMessage(func(b []byte, err error) {
			if err == nil {
				take(b)
			}
		})
		d.turn()
	}
	return func(n int) {
		got = 0
		for range n {
			d.announce(size)
		}
		d.turn()
		for range n {
			if callback {
				break
			}
			b, err := d.sock.Recv(ctx)
			if err != nil {
				panic(err)
			}
			take(b)
		}
		if got != n {
			panic("a message did not arrive")
		}
	}
}

// costs are the ways of a message whose cost is measured.
var costs = []struct {
	name  string
	size  int
	units int // of the metric: messages, or fragments of one
	start func(d *instant, size int) func(n int)
}{
	{"side=send", 64, 1, (*instant).sending},
	{"side=send", 1 << 20, 16, (*instant).sending},
	{"side=recv/by=callback", 64, 1, func(d *instant, n int) func(int) { return d.receiving(n, true) }},
	{"side=recv/by=Recv", 64, 1, func(d *instant, n int) func(int) { return d.receiving(n, false) }},
	{"side=recv/by=callback", 1 << 20, 16, func(d *instant, n int) func(int) { return d.receiving(n, true) }},
}

// BenchmarkCost is what one side spends on a message, from Alloc to Free, with the ring
// between application and worker, the engine, and its posts and polls, on a device that
// costs nothing. ns/unit is for each small message, or each fragment of 64 KiB: the median
// of pieces that are shorter than what the kernel lets one program run for, so that other
// programs do not count.
func BenchmarkCost(b *testing.B) {
	const steps = 20
	for _, c := range costs {
		b.Run(fmt.Sprintf("%s/size=%d", c.name, c.size), func(b *testing.B) {
			step := c.start(newInstant(b, 1), c.size)
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				for range steps {
					step(costBatch)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/float64(steps*costBatch*c.units), "ns/unit")
		})
	}
}

// TestCostAllocatesNothing: none of these ways takes memory of the Go heap.
func TestCostAllocatesNothing(t *testing.T) {
	if os.Getenv("BEMALLOC_DEBUG") != "" {
		t.Skip("BEMALLOC_DEBUG allocates")
	}
	for _, c := range costs {
		t.Run(fmt.Sprintf("%s/size=%d", c.name, c.size), func(t *testing.T) {
			step := c.start(newInstant(t, 1), c.size)
			for range 100 { // rings grow, pools fill
				step(costBatch)
			}
			if n := testing.AllocsPerRun(200, func() { step(costBatch) }); n != 0 {
				t.Errorf("%v allocations in %d messages", n, costBatch)
			}
		})
	}
}
