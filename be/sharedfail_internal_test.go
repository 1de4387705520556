package be

// SharedFailed tells whether the device's word that it gave a shared receive queue up has
// reached its worker: what is dialed before that is on the old queue.
func (n *Node) SharedFailed() (failed bool) {
	for _, w := range n.workers {
		w.call(func() { failed = failed || w.shared != nil && w.shared.failed })
	}
	return failed
}
