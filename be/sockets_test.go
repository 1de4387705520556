package be_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"github.com/byteexpress/byteexpress/be"
)

// socketBytes is what a socket may take of Go's heap, both of its ends, before it has
// received anything: it is 1.7 KB.
const socketBytes = 2 << 10

// TestTenThousandSockets share one queue pair and four goroutines, take no registered
// memory, and share the queue pair fairly: when all of them have messages waiting, and
// half of all have come, each has had about half of its own.
func TestTenThousandSockets(t *testing.T) {
	sockets, each := 10000, 8
	if raceEnabled {
		sockets, each = 1000, 32 // one message more or less counts for less
	}
	p := newPair(t, be.Config{})
	counts := make([]int, sockets) // the one goroutine's
	total, jain := 0, 0.0
	done := make(chan struct{})
	m := be.NewMux(sockets, func(s *be.Socket, b []byte, err error) {
		if err != nil {
			return
		}
		counts[binary.LittleEndian.Uint32(b)]++
		p.nodes[0].Free(b)
		if total++; total == sockets*each/2 {
			jain = fairness(counts)
		}
		if total == sockets*each {
			close(done)
		}
	})
	serveMux(t, m, 1)
	_, first := p.connect(t, "gate")
	registered, before := p.nodes[0].Stats().Registered, heap()
	servers, clients := p.connectInto(t, m, sockets)
	n := (heap() - before) / float64(sockets)
	t.Logf("a socket takes %.0f bytes of Go's heap", n)
	if n > socketBytes && !raceEnabled {
		t.Errorf("that is more than %d", socketBytes)
	}
	runtime.KeepAlive(servers)
	if st := p.nodes[0].Stats(); st.Engines != 1 || st.Sockets != sockets+1 || st.Registered != registered {
		t.Fatalf("%d engines with %d sockets, want 1 with %d; %+v registered, before %+v", st.Engines, st.Sockets, sockets+1, st.Registered, registered)
	}

	// The worker is held until everything is posted, one socket after another, so
	// that the order of sending is the scheduler's alone.
	gate, held := make(chan struct{}), make(chan struct{})
	free := func(b []byte, hold bool) func(error) {
		return func(err error) {
			if err != nil {
				t.Errorf("post: %v", err)
				return
			}
			p.nodes[1].Free(b)
			if hold {
				close(held)
				<-gate
			}
		}
	}
	b := alloc(t, p.nodes[1], 1, 0)
	if err := first.Post(b, free(b, true)); err != nil {
		t.Fatal(err)
	}
	<-held
	for i, s := range clients {
		for range each {
			b := alloc(t, p.nodes[1], 64, 0)
			binary.LittleEndian.PutUint32(b, uint32(i))
			if err := s.Post(b, free(b, false)); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(gate)
	<-done
	for i, n := range counts {
		if n != each {
			t.Fatalf("socket %d: %d messages, want %d", i, n, each)
		}
	}
	if jain < 0.99 {
		t.Errorf("fairness of Jain %.4f, want 0.99", jain)
	}
	t.Logf("fairness of Jain %.6f", jain)
}

// fairness is Jain's index: 1 when all are equal, 1/n when one has everything.
func fairness(counts []int) float64 {
	sum, squares := 0.0, 0.0
	for _, n := range counts {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	return sum * sum / (float64(len(counts)) * squares)
}

// TestFairnessCanFail is the negative control of the index.
func TestFairnessCanFail(t *testing.T) {
	if f := fairness([]int{8, 8, 0, 0}); f != 0.5 {
		t.Errorf("half of the sockets starve: %v, want 0.5", f)
	}
}

// BenchmarkOpenSocket opens sockets on one engine, and tells what one costs in Go's
// heap: both of its ends, nothing received yet, and when each has had one message.
func BenchmarkOpenSocket(b *testing.B) {
	const sockets = 10000
	var opened, used float64
	for b.Loop() {
		p := newPair(b, be.Config{})
		m := be.NewMux(sockets, func(_ *be.Socket, m []byte, _ error) { p.nodes[0].Free(m) })
		serveMux(b, m, 1)
		warm, _ := p.connect(b, "engine")
		before := heap()
		servers, clients := p.connectInto(b, m, sockets)
		opened = (heap() - before) / sockets
		ctx := limit(b)
		for _, s := range clients {
			msg := alloc(b, p.nodes[1], 64, 0)
			if err := s.Send(ctx, msg); err != nil {
				b.Fatal(err)
			}
			p.nodes[1].Free(msg)
		}
		used = (heap() - before) / sockets
		runtime.KeepAlive(servers)
		warm.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/sockets, "ns/socket")
	b.ReportMetric(opened, "B/socket")
	b.ReportMetric(used, "B/used-socket")
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkSockets sends by one socket, and by turns by ten thousand, to a Mux.
func BenchmarkSockets(b *testing.B) {
	for _, size := range []int{64, 4 << 10, 64 << 10} {
		for _, sockets := range []int{1, 100, 10000} {
			b.Run(fmt.Sprintf("size=%d/sockets=%d", size, sockets), func(b *testing.B) {
				p := newPair(b, be.Config{})
				m := be.NewMux(sockets, func(_ *be.Socket, m []byte, _ error) { p.nodes[0].Free(m) })
				serveMux(b, m, 1)
				_, clients := p.connectInto(b, m, sockets)
				const outstanding = 64
				tokens := make(chan []byte, outstanding)
				var done [outstanding]func(error)
				for i := range outstanding {
					msg := alloc(b, p.nodes[1], size, 0)
					msg[0] = byte(i)
					done[i] = func(err error) {
						if err != nil {
							b.Errorf("post: %v", err)
						}
						tokens <- msg
					}
					tokens <- msg
				}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				next := 0
				for b.Loop() {
					msg := <-tokens
					if err := clients[next].Post(msg, done[msg[0]]); err != nil {
						b.Fatal(err)
					}
					if next++; next == sockets {
						next = 0
					}
				}
				for range outstanding {
					p.nodes[1].Free(<-tokens)
				}
			})
		}
	}
}
