package cluster

import "github.com/byteexpress/byteexpress/sim/des"

// Crash ends the node and its NIC without a word: peers hear nothing any more.
func (n *Node) Crash() {
	n.crashed = true
	n.host.Crash()
}

// SetStepDelay makes the node's processor slower or faster than Config.StepDelay.
func (n *Node) SetStepDelay(d des.Time) { n.delay = max(d, 0) }
