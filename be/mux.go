package be

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/pkg/errors"
)

// A socket's messages go one way for as long as it lives.
var (
	// ErrInMux says that a socket's messages go to a Mux already.
	ErrInMux = errors.New("socket is in a mux already")
	// ErrOnMessage says that a socket's messages go to the function of OnMessage already.
	ErrOnMessage = errors.New("socket has a function of OnMessage already")
)

// maxMuxSockets is as many sockets as one engine has at most.
const maxMuxSockets = 1 << 24

// Mux has the messages of many sockets handled by a few goroutines, those that call
// [Mux.Serve]: a server with thousands of sockets needs no goroutine for each.
//
// A socket is served by one goroutine at a time: its messages come in order, and its
// next one when the handler has returned. Sockets with messages take turns, one
// message a turn. The handler may block; it keeps one goroutine of Serve from the
// other sockets meanwhile, and no more. A socket whose messages are not handled holds
// its own peer back, at Config.Backlog messages, and nobody else.
//
// A socket costs its place in the queue; one without messages costs no time.
type Mux struct {
	handle   func(*Socket, []byte, error)
	limit    int
	err      error // what is wrong with it
	sockets  atomic.Int64
	ready    readyQueue   // each socket once at most
	sleepers atomic.Int32 // goroutines that wait for bell
	bell     chan struct{}
}

// NewMux makes a Mux for at most that many sockets at a time, of any nodes (48 to 96
// bytes each). handle is called with each message, on a goroutine that called Serve. The
// buffer is handle's: it may be sent, kept, passed on, and is given back with
// s.Node().Free. The last call for a socket has no buffer and the error that ended it;
// the socket then leaves the Mux. A Mux for less than 1 socket or more than 16,777,216, or
// without a handler, is of no use: Add and Serve say so.
func NewMux(sockets int, handle func(s *Socket, b []byte, err error)) *Mux {
	m := &Mux{handle: handle, limit: sockets, bell: make(chan struct{}, 1)}
	switch {
	case handle == nil:
		m.err = errors.New("be: a mux needs a handler: give NewMux one")
	case sockets < 1 || sockets > maxMuxSockets:
		m.err = &ConfigError{"sockets of a Mux", int64(sockets), fmt.Sprintf("1 to %d", maxMuxSockets)}
	default:
		m.ready.init(sockets)
	}
	return m
}

// Add brings a socket's messages to the Mux, those too that came before, for good: Recv
// and OnMessage give ErrInMux from then on, and so does a Recv that waits. Errors:
// ErrInMux, ErrOnMessage, a *ConfigError when the Mux has as many sockets as it was made
// for, and what is wrong with what NewMux was given. Any goroutine may call it, the handler too.
func (m *Mux) Add(s *Socket) error {
	if m.err != nil {
		return m.err
	}
	if n := m.sockets.Add(1); n > int64(m.limit) {
		m.sockets.Add(-1)
		return &ConfigError{"sockets of a Mux", n, fmt.Sprintf("at most %d, which NewMux was told", m.limit)}
	}
	if err := s.take(takenByMux); err != nil {
		m.sockets.Add(-1)
		return err
	}
	s.conn.n.trackIn(m, s)
	s.wakeRecv()
	m.push(s, message{}) // what came before; so far it was its turn
	return nil
}

// Serve handles messages until ctx ends, and returns its error. Any number of
// goroutines may call it; when none does, messages wait.
func (m *Mux) Serve(ctx context.Context) error {
	if m.err != nil {
		return m.err
	}
	if ctx == nil {
		return errNoContext
	}
	done := ctx.Done()
	for {
		select {
		case <-done:
			m.ring() // somebody else's turn, if the bell was for us
			return ctx.Err()
		default:
		}
		if s, msg := m.ready.pop(); s != nil {
			m.ring()
			m.serve(s, msg)
			continue
		}
		m.sleepers.Add(1)
		if m.ready.empty() {
			select {
			case <-m.bell:
			case <-done:
			}
		}
		m.sleepers.Add(-1)
	}
}

// ring wakes a goroutine of Serve, if one sleeps and there is work for it. One bell
// may stand for many sockets: who takes one of them rings for the next.
func (m *Mux) ring() {
	if m.sleepers.Load() > 0 && !m.ready.empty() {
		select {
		case m.bell <- struct{}{}:
		default:
		}
	}
}

// The turn of a socket in a Mux.
const (
	turnNone  uint32 = iota // it has nothing, and is in no queue
	turnTaken               // it is in the queue, or served; or in no Mux yet
	turnMore                // and its inbox got something, or it ended, since that was last looked at
)

// push has a socket served whose turn is taken by the caller.
func (m *Mux) push(s *Socket, msg message) {
	m.ready.push(s, msg)
	m.ring()
}

// hand has a socket served that waits for nothing, and gives it a message; false if its
// messages have to go by its inbox.
func (m *Mux) hand(s *Socket, msg message) bool {
	if s.turn.Load() != turnNone || !s.turn.CompareAndSwap(turnNone, turnTaken) {
		return false
	}
	m.push(s, msg)
	return true
}

// wake has a socket served that has something new.
func (m *Mux) wake(s *Socket) {
	if s.turn.Swap(turnMore) == turnNone {
		m.push(s, message{})
	}
}

// serve is one turn of a socket, with the message that it brought.
func (m *Mux) serve(s *Socket, msg message) {
	if msg.b != nil {
		s.release(msg)
		s.took()
		m.handle(s, msg.b, nil)
	} else {
		s.turn.Store(turnTaken) // before the look
		ended := s.ended.Load() // before the look for messages: it is set after the last
		if b, ok := s.pop(); ok {
			m.handle(s, b, nil)
		} else if ended {
			m.sockets.Add(-1) // and its turn goes on, so that it is never woken again
			s.conn.n.untrack(s)
			m.handle(s, nil, s.err)
			return
		}
		if !s.box.empty() || s.ended.Load() {
			m.ready.push(s, message{}) // for ourselves, if nobody else comes
			return
		}
	}
	if !s.turn.CompareAndSwap(turnTaken, turnNone) {
		m.ready.push(s, message{})
	}
}

// drop frees the messages in the queue that are of a node which closes.
func (m *Mux) drop(n *Node) {
	for range len(m.ready.cells) {
		s, msg := m.ready.pop()
		if s == nil {
			break
		}
		if msg.b != nil && s.conn.n == n {
			s.release(msg)
			n.mem.Free(msg.b)
			msg = message{}
		}
		m.ready.push(s, msg)
	}
	m.ring()
}
