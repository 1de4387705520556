package be

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

// TestReadyQueue: many producers and consumers of a full queue; what is put in comes
// out once for each time, in the order of one producer and consumer.
func TestReadyQueue(t *testing.T) {
	var q readyQueue
	socks := make([]Socket, 5)
	q.init(len(socks))
	for round := range 20 {
		for i := range socks {
			q.push(&socks[i], message{b: []byte{byte(i)}})
		}
		for i := range socks {
			if s, m := q.pop(); s != &socks[i] || m.b[0] != byte(i) {
				t.Fatalf("round %d: another socket or message in place %d", round, i)
			}
		}
		if s, _ := q.pop(); s != nil || !q.empty() {
			t.Fatal("more than was put in")
		}
	}
	const turns = 20000
	var left atomic.Int64
	left.Store(turns)
	counts := make([]atomic.Int64, len(socks))
	for i := range socks {
		q.push(&socks[i], message{})
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for left.Load() > 0 {
				s, _ := q.pop()
				if s == nil {
					runtime.Gosched()
					continue
				}
				if s.turn.Swap(turnTaken) != turnNone {
					t.Error("a socket is in the queue twice")
				}
				for i := range socks {
					if s == &socks[i] {
						counts[i].Add(1)
					}
				}
				left.Add(-1)
				s.turn.Store(turnNone)
				q.push(s, message{})
			}
		})
	}
	wg.Wait()
	for i := range counts {
		if counts[i].Load() == 0 {
			t.Errorf("socket %d never had a turn", i)
		}
	}
}

// TestSocketIsCompact: what each small message touches of a socket is in one line.
func TestSocketIsCompact(t *testing.T) {
	if n := unsafe.Sizeof(Socket{}); n != 64 {
		t.Errorf("a socket has %d bytes, want 64", n)
	}
}
