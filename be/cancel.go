package be

import (
	"context"
	"sync"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be/core"
)

// PostContext is Post for a message that is given up when ctx ends, if that is still
// possible: what is queued, asked for, or written in part is taken back, and the peer
// never sees it; what is wholly on its way is delivered. done is called once, whatever
// comes first: with nil, an error, or ctx's error for a message that was given up. The
// buffer goes as with Post: after nil it is the caller's, after an error the node has it.
// It allocates, unless ctx cannot end.
func (s *Socket) PostContext(ctx context.Context, b []byte, done func(error)) error {
	return s.cancelable(ctx, done, func(tag uint64, done func(error)) error { return s.post(b, tag, done) })
}

// PostGatherContext is PostGather for a message that is given up when ctx ends, as with
// PostContext. The memory is the caller's again when done is called, and not before: the
// device may be reading it when ctx ends.
func (s *Socket) PostGatherContext(ctx context.Context, head []byte, parts [][]byte, done func(error)) error {
	return s.cancelable(ctx, done, func(tag uint64, done func(error)) error { return s.postGather(head, parts, tag, done) })
}

// PostPutContext is PostPut for a write that is given up when ctx ends, as with
// PostContext. The peer's buffer may then have a part of it, which the peer does not
// hear of.
func (s *Socket) PostPutContext(ctx context.Context, t Token, b []byte, done func(error)) error {
	return s.cancelable(ctx, done, func(tag uint64, done func(error)) error { return s.postPut(t, b, tag, done) })
}

// cancelable posts by post, and takes back when ctx ends.
func (s *Socket) cancelable(ctx context.Context, done func(error), post func(uint64, func(error)) error) error {
	if ctx.Done() == nil {
		return post(0, done)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p := &cancelablePost{ctx: ctx, user: done}
	tag := s.tags.Add(1)
	if err := post(tag, p.done); err != nil {
		return err
	}
	// The command comes after that of the post. One that finds nothing does nothing.
	p.watch(context.AfterFunc(ctx, func() {
		s.conn.w.submit(&command{kind: cmdCancel, conn: s.conn, sock: s.core, tag: tag})
	}))
	return nil
}

// cancelablePost is a message that watches its context until it has ended.
type cancelablePost struct {
	ctx  context.Context
	user func(error)

	mu    sync.Mutex
	ended bool
	stop  func() bool
}

func (p *cancelablePost) watch(stop func() bool) {
	p.mu.Lock()
	p.stop = stop
	ended := p.ended
	p.mu.Unlock()
	if ended {
		stop()
	}
}

func (p *cancelablePost) done(err error) {
	p.mu.Lock()
	p.ended = true
	stop := p.stop
	p.mu.Unlock()
	if stop != nil {
		stop()
	}
	if errors.Is(err, core.ErrCanceled) {
		err = p.ctx.Err()
	}
	tell(p.user, err)
}
