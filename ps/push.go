package ps

import (
	"context"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// PushCall is one push. The caller owns it, and may use it again once done was called;
// its storage is kept, so that steady use allocates nothing. A PushCall is not copied.
type PushCall struct {
	Keys      []uint64      // read until GoPush returns
	Gradients []float32     // likewise: dim values a key, in the order of Keys
	Timeout   time.Duration // 0: wait for ever

	// Again repeats the last GoPush of this PushCall, which failed, with the same Keys and
	// Gradients: shards that had applied their part do not do it again. If one cannot know
	// that any more, as its map has left it out or as with ErrForgotten, the others get
	// theirs, and the error's code is OutOfRange, each time: that part is applied once or not
	// at all, and the rows tell.
	Again bool

	// Err is set before done is called; an *archon.Error is in its chain. After an error
	// some shards may have applied their part; see Again.
	Err error

	fan  fanout
	done func(*PushCall)
	wake chan struct{} // of Client.Push
	end  func()        // finish, bound once
}

// GoPush sends gradients to the shards; done(p) runs once, when all have applied
// theirs or the call has failed, on goroutines as with GoFetch.
func (c *Client) GoPush(p *PushCall, done func(*PushCall)) {
	p.Err, p.done = nil, done
	if p.end == nil {
		p.end = p.finish
	}
	if len(p.Gradients) != len(p.Keys)*c.dim {
		p.Err = archon.Errorf(archon.InvalidArgument, "ps: %d gradient values for %d keys of %d values", len(p.Gradients), len(p.Keys), c.dim)
		done(p)
		return
	}
	again := p.Again && p.fan.sent && p.fan.client == c
	if again && c.follower != nil {
		p.fan.again(p.Timeout)
		return
	}
	p.fan.split(c, p.Keys)
	if p.Err = p.fan.alloc(pushHeader, 4*c.dim); p.Err != nil {
		p.fan.sent = again
		done(p)
		return
	}
	p.fan.putKeys(p.Keys)
	p.putGradients(c.dim)
	for _, part := range p.fan.parts {
		if part.count > 0 {
			part.number(again)
		}
	}
	p.fan.start(MethodPush, p.Timeout, p.end)
}

// putGradients writes the gradients behind the keys of their parts.
func (p *PushCall) putGradients(dim int) {
	for i := range p.Keys {
		part, pos := p.fan.place(i)
		at := pushHeader + 8*part.count + 4*dim*pos
		putFloats(part.request[at:at+4*dim], p.Gradients[i*dim:(i+1)*dim])
	}
}

func (p *PushCall) finish() {
	p.Err = p.fan.err()
	p.fan.release()
	p.done(p)
}

func wakePush(p *PushCall) { p.wake <- struct{}{} }

// Push applies gradients, dim values a key, and returns when all shards have. It must
// not be called from a done function.
func (c *Client) Push(ctx context.Context, keys []uint64, gradients []float32) error {
	timeout, err := timeoutOf(ctx)
	if err != nil {
		return err
	}
	p := c.pushes.Get().(*PushCall)
	p.Keys, p.Gradients, p.Timeout, p.Again = keys, gradients, timeout, false
	c.GoPush(p, wakePush)
	select {
	case <-p.wake:
	case <-ctx.Done():
		p.fan.cancel(contextError(ctx))
		<-p.wake
	}
	err = p.Err
	p.Keys, p.Gradients = nil, nil
	c.pushes.Put(p)
	return err
}
