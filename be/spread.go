package be

import "encoding/binary"

// Sockets that go to one address are spread over the pairs of a worker of ours and one
// of the peer's: each pair has an engine of its own, brought up when a socket comes to
// it. The first dial does not know how many workers the peer has: it asks for any, and
// all dials that come meanwhile wait for it.

// maxWish bounds the number by which a first dial picks a worker of the peer's.
const maxWish = 1 << 16

// noPairs is what stands for the peer's worker when the peer does not know of pairs: a
// lane then has one number, and belongs to the worker of that number on each side.
const noPairs = -1

// spread is what a node knows of its dials to one address. The node's mutex guards it.
type spread struct {
	dials   int // so far
	first   int // our worker of the first
	wish    int // the peer's of the first, modulo its number of workers
	workers int // of the peer; 0: not known; noPairs
}

// turnOf counts a dial to an address and gives its turn.
func (n *Node) turnOf(addr string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.spreads[addr]
	if s == nil {
		k := len(n.spreads)
		s = &spread{first: k, wish: (int(binary.LittleEndian.Uint16(n.id[:])) + k) % maxWish}
		n.spreads[addr] = s
	}
	s.dials++
	return s.dials - 1
}

// wayOf gives the way of a dial of this turn, as far as the peer is known: until the
// first dial has an engine, its way is that of all.
func (n *Node) wayOf(addr string, turn int) way {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.spreads[addr]
	own := len(n.workers)
	switch {
	case s.workers == 0:
		return way{addr, s.first % own, s.wish}
	case s.workers == noPairs:
		return way{addr, (turn + s.first) % own, noPairs}
	}
	i, j := pairOf(turn, own, s.workers)
	return way{addr, (i + s.first) % own, (j + s.wish) % s.workers}
}

// pairOf gives the pair of workers, of own and theirs, whose turn it is: so that each
// pair comes once in own * theirs turns, and any turns in a row are for different
// workers as far as there are some.
func pairOf(turn, own, theirs int) (i, j int) {
	a, b := own, theirs
	for b > 0 {
		a, b = b, a%b
	}
	return turn % own, (turn + turn/(own/a*theirs)) % theirs
}

// learn takes what a peer's hello says of its workers.
func (n *Node) learn(addr string, their *hello) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.spreads[addr]; s != nil {
		s.workers = noPairs
		if w := their.Workers; w > 0 {
			s.workers = min(w, maxWorkers)
		}
	}
}
