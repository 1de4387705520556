package cluster

import (
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

// processor is what a node with costs has more than one that acts after a fixed
// time. Each thread has a core. A step takes two tasks of it: one polls, and at its
// end engines act on what was found; the other pays for what they posted, and at its
// end the NIC is told. The application hears of it a while later, on the last core.
type processor struct {
	cpu   *hostcpu.CPU
	costs *hostcpu.EngineCosts
	said  uint32 // notes for which an event is to come
	told  uint32 // notes of which the application was told
}

// CPU is the node's processor, nil without Config.Costs.
func (n *Node) CPU() *hostcpu.CPU { return n.cpu }

// tellSoon has the application be told of all notes so far.
func (n *Node) tellSoon() {
	if all := n.told + uint32(len(n.later)-n.first); all != n.said {
		n.said = all
		n.c.k.At(n.c.k.Now()+n.costs.Deliver, n.c.tellKind, int32(n.ID()), int32(all))
	}
}

// tellUpTo tells the application of the notes up to a number.
func (n *Node) tellUpTo(all uint32) {
	for n.told != all {
		n.told++
		n.tellNext()
	}
	switch {
	case n.first == len(n.later):
		n.later, n.first = n.later[:0], 0
	case n.first > 1024 && n.first > len(n.later)/2:
		k := copy(n.later, n.later[n.first:])
		clear(n.later[k:])
		n.later, n.first = n.later[:k], 0
	}
	n.tellSoon() // what this led to
}
