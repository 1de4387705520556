//go:build !race

package be

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// manyCost measures a way of messages by many sockets against the same by one of them,
// a little of both at a time, in processor time: messages go to sockets in turn, or in a random order.
type manyCost struct {
	d      *instant
	socks  []*Socket
	order  []int
	inARow int                     // messages of one socket
	size   int                     // bytes of a message
	arrive func(k int)             // has a message come for the k-th socket
	step   func(number int, n int) // has n messages take the way, by sockets in the order from number on
}

// newManyCost is for many sockets to one peer.
func newManyCost(t testing.TB, sockets int, random bool) *manyCost {
	m := &manyCost{d: newInstant(t, 1), inARow: 1, size: 64}
	m.socks = append(m.socks, m.d.sock)
	for len(m.socks) < sockets {
		m.socks = append(m.socks, m.d.open(t))
	}
	m.arrive = func(k int) { m.d.announceOn(uint32(2*k+1), 64) }
	for i := range sockets {
		m.order = append(m.order, i)
	}
	if random {
		m.shuffle()
	}
	return m
}

// newManyPeers is for a socket to each of many peers, in a random order.
func newManyPeers(t testing.TB, peers, inARow, size, shared int) *manyCost {
	m := &manyCost{d: newInstantShared(t, peers, shared), inARow: inARow, size: size}
	for i, p := range m.d.peers {
		m.socks, m.order = append(m.socks, p.sock), append(m.order, i)
	}
	m.shuffle()
	m.arrive = func(k int) { m.d.peers[k].announce(size) }
	return m
}

func (m *manyCost) shuffle() {
	rng := rand.New(rand.NewPCG(1, 1))
	rng.Shuffle(len(m.order), func(i, j int) { m.order[i], m.order[j] = m.order[j], m.order[i] })
}

// at is the socket that has the i-th message from number on: the first for all if
// number is negative.
func (m *manyCost) at(number, i int) int {
	if number < 0 {
		return 0
	}
	return m.order[(number+i)/m.inARow%len(m.order)]
}

// peer is that of the k-th socket.
func (m *manyCost) peer(k int) *instantPeer { return m.d.peers[min(k, len(m.d.peers)-1)] }

// costChunk is how many messages are handed over, or arrive, before the worker's turn.
const costChunk = 64

func (m *manyCost) sending(t testing.TB) {
	node := m.d.sock.Node()
	var bufs [costChunk][]byte
	var done [costChunk]func(error)
	for i := range done {
		b, err := node.Alloc(m.size)
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
			if err := m.socks[m.at(number, i)].Post(bufs[i%costChunk], done[i%costChunk]); err != nil {
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
	serve := func() {
		m.d.turn()
		for s, b := mux.ready.pop(); s != nil; s, b = mux.ready.pop() {
			mux.serve(s, b)
		}
	}
	m.step = func(number, n int) {
		for i := range n {
			k := m.at(number, i)
			if m.peer(k).short() {
				serve()
			}
			m.arrive(k)
			if i%(costChunk/2) == costChunk/2-1 || i == n-1 { // no more than are posted
				serve()
			}
		}
	}
}

// manyWays are the ways of messages that are measured by many sockets.
var manyWays = []struct {
	name string
	f    func(*manyCost, testing.TB)
}{{"send", (*manyCost).sending}, {"recv", (*manyCost).receiving}}

// BenchmarkCostOfManySockets is what one side spends on a small message by ten thousand
// sockets of one queue pair, beside the same by one socket, on a device that costs
// nothing: of-one is the rate of the first as a share of that of the second.
func BenchmarkCostOfManySockets(b *testing.B) {
	for _, way := range manyWays {
		for _, random := range []bool{false, true} {
			b.Run(fmt.Sprintf("side=%s/random=%v", way.name, random), func(b *testing.B) {
				m := newManyCost(b, 10000, random)
				way.f(m, b)
				m.measure(b)
			})
		}
	}
}

// BenchmarkCostOfManyPeers is the same of peers with a queue pair each, beside one of
// them: a message to each, or several in a row, in a random order of peers. What sixteen
// need is in the caches. Nothing is copied, whatever the size.
func BenchmarkCostOfManyPeers(b *testing.B) {
	for _, way := range manyWays {
		for _, peers := range []int{16, 64, 1000} {
			for _, size := range []int{64, 4 << 10, 64 << 10} {
				for _, inARow := range []int{1, 16} {
					b.Run(fmt.Sprintf("side=%s/peers=%d/size=%d/in-a-row=%d", way.name, peers, size, inARow), func(b *testing.B) {
						m := newManyPeers(b, peers, inARow, size, 0)
						way.f(m, b)
						m.measure(b)
					})
				}
			}
		}
	}
}

// BenchmarkCostOfSharedReceives is what arrives there by a shared receive queue.
func BenchmarkCostOfSharedReceives(b *testing.B) {
	for _, size := range []int{64, 64 << 10} {
		for _, inARow := range []int{1, 16} {
			b.Run(fmt.Sprintf("size=%d/in-a-row=%d", size, inARow), func(b *testing.B) {
				m := newManyPeers(b, 1000, inARow, size, 10000)
				m.receiving(b)
				m.measure(b)
			})
		}
	}
}

func (m *manyCost) measure(b *testing.B) {
	const chunk = 5000 / costChunk * costChunk
	took := func(number int) float64 {
		start := CPUTime(b)
		m.step(number, chunk)
		return float64((CPUTime(b) - start).Nanoseconds()) / chunk
	}
	for i := range 4 {
		took(i * chunk)
	}
	var one, many []float64
	for i := 0; b.Loop(); i += chunk {
		one, many = append(one, took(-1)), append(many, took(i))
	}
	slices.Sort(one)
	slices.Sort(many)
	n := len(one) / 10 // the machine has other work: what takes longer is mostly what that leaves of the caches
	b.ReportMetric(one[n], "ns/msg-one")
	b.ReportMetric(many[n], "ns/msg-many")
	b.ReportMetric(one[n]/many[n], "of-one")
	b.ReportMetric(0, "ns/op")
}
