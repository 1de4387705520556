package cluster

import (
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

// The cores of a node with Config.Costs. The application's tasks, which it gives
// itself, have their own.
const (
	EngineCore = iota
	AppCore
	cores
)

// processor is what a node with costs has more than one that acts after a fixed
// time. A step takes two tasks of the engine's core: one polls, and at its end
// engines act on what was found; the other pays for what they posted, and at its
// end the NIC is told. The application hears of it a while later, on its own core.
type processor struct {
	cpu   *hostcpu.CPU
	costs *hostcpu.EngineCosts
	got   int    // completions polled in this step
	sends int    // messages that the application sent since the last step
	said  uint32 // notes for which an event is to come
	told  uint32 // notes of which the application was told
}

// CPU is the node's processor, nil without Config.Costs.
func (n *Node) CPU() *hostcpu.CPU { return n.cpu }

// planPoll has a step begin when the engine's core is free.
func (n *Node) planPoll() {
	n.c.k.At(max(n.c.k.Now(), n.cpu.Free(EngineCore)), n.c.pollKind, int32(n.ID()), 0)
}

// poll takes completions, and lets the engines act on them when that is paid for.
func (n *Node) poll() {
	n.got = n.cq.Poll(n.polled[:])
	cost := n.costs.EmptyPoll + des.Time(n.got)*n.costs.Completion
	for i := range n.polled[:n.got] {
		if n.polled[i].ID&recvBit != 0 {
			cost += n.costs.Message
		}
	}
	cost += des.Time(n.sends) * n.costs.Message
	n.sends = 0
	n.c.k.At(n.cpu.Do(EngineCore, hostcpu.Engine, n.c.k.Now(), cost), n.c.stepKind, int32(n.ID()), 0)
}

// act is a step's effect: engines take the completions and post.
func (n *Node) act() {
	now := n.c.k.Now()
	before := n.host.Posted()
	n.host.HoldDoorbells()
	for i := range n.polled[:n.got] {
		n.complete(now.Duration(), &n.polled[i])
	}
	n.got = 0
	n.flush(now.Duration())
	p := n.host.Posted()
	cost := des.Time(p.Sends-before.Sends)*n.costs.WQE + des.Time(p.Doorbells-before.Doorbells)*n.costs.Doorbell + des.Time(p.Receives-before.Receives)*n.costs.Receive
	n.host.RingDoorbells(n.cpu.Do(EngineCore, hostcpu.Engine, now, cost) - now)
}

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
