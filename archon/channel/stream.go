package channel

import (
	"context"

	"github.com/byteexpress/byteexpress/archon"
)

// Open starts a call that is answered with a stream: it implements archon.Opener. The
// stream lives and ends with the connection that it is on, and at most a minute longer
// than calls use that. Opening is repeated on
// another replica only when it was refused before the handler ran.
func (ch *Channel) Open(ctx context.Context, inv *archon.Invocation) (stream *archon.Stream, err error) {
	err = ch.onConn(ctx, inv, func(c *conn) error {
		stream, err = c.client.Open(ctx, inv)
		return err
	})
	return stream, err
}

// sendOneWay sends a call that has no answer.
func (ch *Channel) sendOneWay(ctx context.Context, inv *archon.Invocation) error {
	return ch.onConn(ctx, inv, func(c *conn) error {
		_, err := c.client.Do(ctx, inv)
		return err
	})
}

// onConn runs f with connections of replicas until it succeeds, or fails in a way that
// another try may not follow.
func (ch *Channel) onConn(ctx context.Context, inv *archon.Invocation, f func(c *conn) error) error {
	o, _ := ctx.Value(optionsKey{}).(Options)
	e := &Error{Service: ch.cfg.Service, Method: inv.Method.String()}
	for {
		c := ch.pick(o.Affinity)
		if c == nil {
			if e.Err = ch.Wait(ctx); e.Err != nil {
				return e
			}
			continue
		}
		err := f(c)
		if err == nil {
			return nil
		}
		if c.client.Err() != nil {
			c.r.unpublish(c)
		}
		e.Attempts++
		e.Replica, e.Err = c.r.name, err
		e.Causes = append(e.Causes, Cause{Replica: c.r.name, Path: c.path, Err: err})
		if !archon.IsRetryable(err) || e.Attempts >= ch.cfg.Recovery.MaxAttempts || ctx.Err() != nil || !ch.budget.Retry() {
			return e
		}
	}
}
