//go:build !race

package be

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// manyCost measures a way of messages by many sockets against the same by one of them,
// a little of both at a time: messages go to sockets in turn, or in a random order.
type manyCost struct {
	d     *instant
	socks []*Socket
	order []int
	step  func(number int, n int) // has n messages take the way, by sockets in the order from number on
}

func newManyCost(t testing.TB, sockets int, random bool) *manyCost {
	m := &manyCost{d: newInstant(t)}
	m.socks = append(m.socks, m.d.sock)
	for len(m.socks) < sockets {
		m.socks = append(m.socks, m.d.open(t))
	}
	m.order = make([]int, sockets)
	for i := range m.order {
		m.order[i] = i
	}
	if random {
		rng := rand.New(rand.NewPCG(1, 1))
		rng.Shuffle(sockets, func(i, j int) { m.order[i], m.order[j] = m.order[j], m.order[i] })
	}
	return m
}

// costChunk is how many messages are handed over, or arrive, before the worker's turn.
const costChunk = 64

func (m *manyCost) sending(t testing.TB) {
	node := m.d.sock.Node()
	var bufs [costChunk][]byte
	var done [costChunk]func(error)
	for i := range done {
		b, err := node.Alloc(64)
		if err != nil {
			t.Fatal(err)
		}
		bufs[i] = b
		done[i] = func(err error) {
			if err != nil {
				panic(err)
			}
		}
	}
	t.Cleanup(func() {
		for _, b := range bufs {
			node.Free(b)
		}
	})
	m.step = func(number, n int) {
		for i := range n {
			s := m.socks[0]
			if number >= 0 {
				s = m.socks[m.order[(number+i)%len(m.order)]]
			}
			if err := s.Post(bufs[i%costChunk], done[i%costChunk]); err != nil {
				panic(err)
			}
			if i%costChunk == costChunk-1 {
				m.d.turn()
			}
		}
	}
}

// receiving has messages arrive at a Mux, which is served in between.
func (m *manyCost) receiving(t testing.TB) {
	mux := NewMux(len(m.socks), func(s *Socket, b []byte, err error) {
		if err == nil {
			s.Node().Free(b)
		}
	})
	for _, s := range m.socks {
		if err := mux.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	m.step = func(number, n int) {
		for i := range n {
			k := 0
			if number >= 0 {
				k = m.order[(number+i)%len(m.order)]
			}
			m.d.announceOn(uint32(2*k+1), 64)
			if i%(costChunk/2) == costChunk/2-1 || i == n-1 { // no more than are posted
				m.d.turn()
				for s, b := mux.ready.pop(); s != nil; s, b = mux.ready.pop() {
					mux.serve(s, b)
				}
			}
		}
	}
}

// BenchmarkCostOfManySockets is what one side spends on a small message by ten thousand
// sockets of one queue pair, beside the same by one socket, on a device that costs
// nothing: of-one is the rate of the first as a share of that of the second.
func BenchmarkCostOfManySockets(b *testing.B) {
	const sockets, chunk = 10000, 5000
	for _, way := range []struct {
		name string
		f    func(*manyCost, testing.TB)
	}{{"send", (*manyCost).sending}, {"recv", (*manyCost).receiving}} {
		for _, random := range []bool{false, true} {
			b.Run(fmt.Sprintf("side=%s/random=%v", way.name, random), func(b *testing.B) {
				m := newManyCost(b, sockets, random)
				way.f(m, b)
				measure := func(number int) float64 {
					start := time.Now()
					m.step(number, chunk/costChunk*costChunk)
					return float64(time.Since(start).Nanoseconds()) / (chunk / costChunk * costChunk)
				}
				measure(0)
				measure(sockets / 2)
				var one, many, share []float64
				for i := 0; b.Loop(); i += chunk {
					x, y := measure(-1), measure(i)
					one, many, share = append(one, x), append(many, y), append(share, x/y)
				}
				for _, l := range [][]float64{one, many, share} {
					slices.Sort(l)
				}
				n := len(one) / 2
				b.ReportMetric(one[n], "ns/msg-one")
				b.ReportMetric(many[n], "ns/msg-many")
				b.ReportMetric(share[n], "of-one")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
