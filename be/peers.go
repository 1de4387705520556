package be

import (
	"context"
	"net"
)

// lane is one of the ways to another node: there is one for each pair of a worker of
// ours and one of the peer's. For a peer that does not know of pairs, theirs is noPairs,
// and lane k belongs to worker k modulo the number of workers, on each side.
type lane struct {
	peer   incarnation
	number int // of our worker
	theirs int // of the peer's
}

// peer is what a node knows of one lane to another: at most one live engine, and the
// connections that may become one. The node's mutex guards it.
type peer struct {
	conn    *conn
	out     *attempt      // our dial, its hello taken by the peer
	in      *attempt      // the peer's dial, its hello taken by us
	changed chan struct{} // closed and replaced at each change
}

// attempt is a bootstrap in progress.
type attempt struct {
	line      net.Conn
	committed bool // it can no longer be given up for the other direction
	aborted   bool
	owed      bool // the peer waits for our hello, or for the refusal
}

// abort gives an attempt up in favour of the other direction. A peer that waits
// for our hello is not cut off: it would take that for a fault. The goroutine that
// owes the hello refuses it instead.
func (a *attempt) abort() {
	a.aborted = true
	if !a.owed {
		a.line.Close()
	}
}

func (n *Node) peer(l lane) *peer {
	p := n.peers[l]
	if p == nil {
		p = &peer{changed: make(chan struct{})}
		n.peers[l] = p
	}
	return p
}

// change tells those that wait, and forgets peers of whom nothing is known.
func (n *Node) change(l lane, p *peer) {
	close(p.changed)
	p.changed = make(chan struct{})
	if p.conn == nil && p.out == nil && p.in == nil {
		delete(n.peers, l)
	}
}

// claimOut registers our dial to a peer that answered with its hello. It is
// errExists when there is an engine, or when the peer's own dial goes first: of
// two that cross, the one of the lower incarnation counts.
func (n *Node) claimOut(l lane, a *attempt) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.peer(l)
	switch {
	case p.conn != nil, p.out != nil:
		return errExists
	case p.in != nil && (p.in.committed || l.peer.less(n.id)):
		return errExists
	case p.in != nil:
		p.in.abort()
		p.in = nil
	}
	p.out = a
	return nil
}

// claimIn registers the dial of a peer whose hello came, by the same rule.
func (n *Node) claimIn(l lane, a *attempt) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.peer(l)
	switch {
	case p.conn != nil, p.in != nil:
		return errExists
	case p.out != nil && (p.out.committed || n.id.less(l.peer)):
		return errExists
	case p.out != nil:
		p.out.abort()
		p.out = nil
	}
	a.owed = true
	p.in = a
	return nil
}

// answered says that the peer has our hello; false if the attempt was given up.
func (n *Node) answered(a *attempt) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	a.owed = false
	return !a.aborted
}

// commit makes an attempt final; false if it was given up.
func (n *Node) commit(a *attempt) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	a.committed = !a.aborted
	return a.committed
}

// release ends an attempt, with the connection that came of it or nil.
func (n *Node) release(l lane, a *attempt, c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.peer(l)
	if p.out == a {
		p.out = nil
	}
	if p.in == a {
		p.in = nil
	}
	if c != nil && !c.dead.Load() {
		p.conn = c
	}
	n.change(l, p)
}

// forget takes a failed connection out of the table.
func (n *Node) forget(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.peers[c.lane()]; p != nil && p.conn == c {
		p.conn = nil
		n.change(c.lane(), p)
	}
}

// await waits for a live connection to a peer for as long as an attempt may
// bring one; nil when there is none and none comes.
func (n *Node) await(ctx context.Context, l lane) *conn {
	for {
		n.mu.Lock()
		p := n.peers[l]
		if p == nil || p.conn != nil {
			defer n.mu.Unlock()
			if p == nil {
				return nil
			}
			return p.conn
		}
		changed := p.changed
		n.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}
