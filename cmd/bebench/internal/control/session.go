package control

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/pkg/errors"
)

// heartbeat is how often an end tells the other that it is alive while both work.
// A peer that is silent for the connection's time limit is given up.
const heartbeat = 250 * time.Millisecond

// Session is the part of a test in which both ends work at once and may take as
// long as they need: each shows that it is alive, and hears at once when the other
// fails. Its steps, at both ends:
//
//	finished  this end initiates nothing more; the body says how much it did
//	ended     this end has also taken all that the peer initiated
//	verdict   what this end measured and found, once both have ended
type Session struct {
	c          *Conn
	ctx        context.Context
	giveUp     context.CancelCauseFunc
	onFinished func(body json.RawMessage) error
	ended      chan struct{}
	verdict    chan json.RawMessage
	running    sync.WaitGroup
}

// errOver is the cause of the context's end when a session ended well.
var errOver = errors.New("the session is over")

// Begin starts a session. onFinished is told, on another goroutine, what the peer
// did; its error gives the session up. Nothing else may receive from the
// connection until End.
func (c *Conn) Begin(ctx context.Context, onFinished func(body json.RawMessage) error) *Session {
	s := &Session{c: c, onFinished: onFinished, ended: make(chan struct{}), verdict: make(chan json.RawMessage, 1)}
	s.ctx, s.giveUp = context.WithCancelCause(ctx)
	s.running.Go(s.listen)
	s.running.Go(s.beat)
	return s
}

// Context ends when either end gives up, and at End; its cause says why.
func (s *Session) Context() context.Context { return s.ctx }

// GiveUp ends the session's context. The first cause counts.
func (s *Session) GiveUp(err error) { s.giveUp(err) }

// Err is why the session was given up.
func (s *Session) Err() error { return context.Cause(s.ctx) }

// lastWords is how long to wait for the peer's reason when its end broke off.
const lastWords = time.Second

// Cause gives the reason for an error of the work itself: what the peer says, if it
// gave up and that is why, else err.
func (s *Session) Cause(err error) error {
	select {
	case <-s.ctx.Done():
		return s.Err()
	case <-time.After(lastWords):
		return err
	}
}

// Finished tells the peer what this end did.
func (s *Session) Finished(body any) error { return s.c.Send("finished", body) }

// Conclude tells the peer that this end has ended, waits until it has too, sends
// what judge then says, and gives the peer's verdict.
func (s *Session) Conclude(judge func() any, peer any) error {
	if err := s.c.Send("ended", nil); err != nil {
		return err
	}
	select {
	case <-s.ended:
	case <-s.ctx.Done():
		return s.Err()
	}
	if err := s.c.Send("verdict", judge()); err != nil {
		return err
	}
	select {
	case raw := <-s.verdict:
		return s.c.fail("verdict", decode(raw, peer))
	case <-s.ctx.Done():
		return s.Err()
	}
}

// End ends the session's goroutines. With an error the peer is told why and the
// connection is closed; without, it can be used on.
func (s *Session) End(err error) {
	if err != nil {
		s.c.Fail(err)
		s.c.Close()
	}
	s.giveUp(errOver)
	s.running.Wait()
}

// listen takes the peer's messages until its verdict.
func (s *Session) listen() {
	finished, ended := false, false
	for {
		step, raw, err := s.c.next(time.Now().Add(s.c.limit))
		if err == nil {
			switch {
			case step == stepAlive:
			case step == "finished" && !finished:
				finished = true
				err = s.onFinished(raw)
			case step == "ended" && finished && !ended:
				ended = true
				close(s.ended)
			case step == "verdict" && ended:
				s.verdict <- raw
				return
			default:
				err = errors.Errorf("the peer is at step %q: the two programs differ", step)
			}
		}
		if err != nil {
			s.giveUp(s.c.fail("run", err))
			return
		}
	}
}

// beat tells the peer that we are alive.
func (s *Session) beat() {
	t := time.NewTicker(heartbeat)
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-t.C:
			if err := s.c.Send(stepAlive, nil); err != nil {
				s.giveUp(err)
				return
			}
		}
	}
}

// ErrInterrupted is returned when an end was interrupted: results are partial.
var ErrInterrupted = errors.New("interrupted: the results are partial")

// AgreeToGoOn tells the peer whether this end goes on to the next measurement, and
// gives ErrInterrupted unless both do.
func (c *Conn) AgreeToGoOn(goOn bool) error {
	if err := c.Send("next", goOn); err != nil {
		return err
	}
	var peer bool
	if err := c.Recv("next", &peer); err != nil {
		return err
	}
	if !goOn || !peer {
		return ErrInterrupted
	}
	return nil
}
