package cluster

import (
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be/core"
)

// of gives the engine of a socket.
func (n *Node) of(k *core.Socket) *engine { return k.Engine().Handler().(*engine) }

// Open asks a connected peer for a socket; App.Opened ends it.
func (n *Node) Open(peer int, service string) (*core.Socket, error) {
	e := n.toPeer[peer]
	if e == nil {
		return nil, errors.Errorf("node %d is not connected to node %d", n.ID(), peer)
	}
	k, err := e.core.Open(0, service, nil)
	n.touch(e)
	return k, err
}

// Alloc gives a buffer for Send.
func (n *Node) Alloc(size int) ([]byte, error) { return n.mem.Alloc(size) }

// Send queues a message that is in a buffer of Alloc. The buffer is the node's from
// now on. done, which may be nil, is called once.
func (n *Node) Send(k *core.Socket, b []byte, done func(error)) error {
	r, err := n.mem.region(b)
	if err != nil {
		return err
	}
	k.Engine().Send(k, b, r.LKey, 0, func(err error) {
		if err == nil {
			n.mem.Free(b)
		}
		if done != nil {
			n.note(note{what: noteDone, err: err, done: done})
		}
	})
	e := n.of(k)
	e.t.sends++
	n.touch(e)
	return nil
}

// SendBytes sends a message of that many bytes of whatever is in the buffer.
func (n *Node) SendBytes(k *core.Socket, size int, done func(error)) error {
	b, err := n.mem.Alloc(size)
	if err != nil {
		return err
	}
	return n.Send(k, b, done)
}

// CloseSocket ends a socket in good order.
func (n *Node) CloseSocket(k *core.Socket) {
	k.Engine().CloseSocket(n.now(), k)
	n.touch(n.of(k))
}

// Goodbye ends the engine to a peer in good order, within the given time.
func (n *Node) Goodbye(peer int, within time.Duration) {
	if e := n.toPeer[peer]; e != nil {
		e.core.Goodbye(n.now(), n.now()+within)
		n.touch(e)
	}
}

// Fail ends the engine to a peer at once.
func (n *Node) Fail(peer int, cause error) {
	if e := n.toPeer[peer]; e != nil {
		e.core.Fail(n.now(), cause)
		n.touch(e)
	}
}

func (n *Node) now() time.Duration { return n.c.k.Now().Duration() }
