package cluster

import "github.com/byteexpress/byteexpress/be/core"

// The methods of core.Handler note what happened; the application is told when the
// engine has returned.

// Opened is part of core.Handler.
func (e *engine) Opened(k *core.Socket, err error) {
	e.n.note(note{what: noteOpened, sock: k, err: err})
}

// Incoming is part of core.Handler: every socket is taken.
func (e *engine) Incoming(k *core.Socket, _ uint32, service string) (core.Refusal, bool) {
	e.n.note(note{what: noteIncoming, sock: k, text: service})
	return core.Refusal{}, true
}

// Message is part of core.Handler.
func (e *engine) Message(k *core.Socket, b []byte, reserved int) {
	e.n.note(note{what: noteMessage, sock: k, e: e, buf: b, held: reserved})
}

// Closed is part of core.Handler.
func (e *engine) Closed(k *core.Socket, err error) {
	e.n.note(note{what: noteClosed, sock: k, err: err})
}

// Failed is part of core.Handler.
func (e *engine) Failed(_ *core.Engine, err error) {
	e.n.note(note{what: noteFailed, peer: int(e.peer), err: err})
}

// Drained is part of core.Handler.
func (e *engine) Drained(*core.Engine) {}

// Down is part of core.Handler.
func (e *engine) Down(*core.Engine) { e.isDown = true }

func (n *Node) note(l note) { n.later = append(n.later, l) }
