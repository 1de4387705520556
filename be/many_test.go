package be_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
)

// sender sends messages of one size to a Mux that handles them by handle: at most 64 at
// a time that the peer's device has not, and 128 that were not handled, which is the
// backlog of one socket.
type sender struct {
	t      testing.TB
	n      *be.Node
	size   int
	tokens chan []byte
	done   [64]func(error)

	window chan struct{}
}

func (s *sender) handle(sock *be.Socket, b []byte, err error) {
	if err == nil {
		sock.Node().Free(b)
		<-s.window
	}
}

func newSender(t testing.TB, n *be.Node, size int) *sender {
	s := &sender{t: t, n: n, size: size, window: make(chan struct{}, be.DefaultBacklog)}
	s.tokens = make(chan []byte, len(s.done))
	for i := range s.done {
		m := alloc(t, n, size, 0)
		m[0] = byte(i)
		s.done[i] = func(err error) {
			if err != nil {
				t.Errorf("post: %v", err)
			}
			s.tokens <- m
		}
		s.tokens <- m
	}
	return s
}

// send sends n messages by these sockets in turn, from the one of number first on,
// and says how long it took until the last was handled, and the processor time.
func (s *sender) send(socks []*be.Socket, first, n int) cost {
	start, cpu := time.Now(), be.CPUTime(s.t)
	for i := range n {
		s.window <- struct{}{}
		m := <-s.tokens
		if err := socks[(first+i)%len(socks)].Post(m, s.done[m[0]]); err != nil {
			s.t.Fatal(err)
		}
	}
	for range cap(s.window) { // until all were handled
		s.window <- struct{}{}
	}
	for range cap(s.window) {
		<-s.window
	}
	return cost{float64(time.Since(start).Nanoseconds()), float64((be.CPUTime(s.t) - cpu).Nanoseconds())}
}

// cost is what sending took, in ns.
type cost struct{ wall, cpu float64 }

func (c cost) plus(o cost) cost { return cost{c.wall + o.wall, c.cpu + o.cpu} }

func (s *sender) free() {
	for range s.done {
		s.n.Free(<-s.tokens)
	}
}

// BenchmarkManyAgainstOne sends by ten thousand sockets of one queue pair in turn, and
// by one of them, a little of both at a time, and tells the rate of the first as a
// share of that of the second; the same of processor time a message. All are medians.
func BenchmarkManyAgainstOne(b *testing.B) {
	const sockets, chunk = 10000, 10000
	for _, size := range []int{64, 4 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			p := newPair(b, be.Config{})
			s := newSender(b, p.nodes[1], size)
			m := be.NewMux(sockets, s.handle)
			serveMux(b, m, 1)
			_, clients := p.connectInto(b, m, sockets)
			s.send(clients, 0, 4*sockets)
			l := map[string][]float64{}
			note := func(what string, v float64) { l[what] = append(l[what], v) }
			for i := 0; b.Loop(); i += 2 * chunk {
				one := s.send(clients[:1], 0, chunk)
				many := s.send(clients, i, chunk)
				one = one.plus(s.send(clients[:1], 0, chunk))
				many = many.plus(s.send(clients, i+chunk, chunk))
				note("of-one", one.wall/many.wall)
				note("of-one-cpu", one.cpu/many.cpu)
				note("ns/msg-one", one.wall/2/chunk)
				note("ns/msg-many", many.wall/2/chunk)
				note("cpu-ns/msg-one", one.cpu/2/chunk)
				note("cpu-ns/msg-many", many.cpu/2/chunk)
			}
			s.free()
			for what, v := range l {
				slices.Sort(v)
				b.ReportMetric(v[len(v)/2], what)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
