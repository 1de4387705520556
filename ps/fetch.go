package ps

import (
	"context"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// FetchCall is one fetch and its rows. The caller owns it, and may use it again once
// done was called and Release; its storage is kept, so that steady use allocates
// nothing. A FetchCall is not copied.
type FetchCall struct {
	Keys    []uint64      // read until GoFetch returns
	Timeout time.Duration // 0: wait for ever

	Err error // set before done is called; an *archon.Error in its chain

	fan  fanout
	done func(*FetchCall)
	wake chan struct{} // of Client.Fetch
	end  func()        // finish, bound once
	pool bool          // belongs to client's pool after Release
}

// GoFetch asks the shards for the rows of f.Keys; done(f) runs once, when all have
// answered or the call has failed: on a socket's, a timer's or the client's goroutine, or
// on this one before GoFetch returns when nothing could be sent. done must not block, and may
// start the next call.
func (c *Client) GoFetch(f *FetchCall, done func(*FetchCall)) {
	f.Err, f.done = nil, done
	if f.end == nil {
		f.end = f.finish
	}
	f.fan.split(c, f.Keys)
	if f.Err = f.fan.alloc(fetchHeader, 0); f.Err != nil {
		done(f)
		return
	}
	f.fan.putKeys(f.Keys)
	f.fan.start(MethodFetch, f.Timeout, f.end)
}

// finish checks the shards' answers.
func (f *FetchCall) finish() {
	dim := f.fan.client.dim
	for _, p := range f.fan.parts {
		if p.count == 0 || p.err != nil {
			continue
		}
		b := p.response.Payload()
		if want := int64(p.count) * int64(dim) * 4; int64(len(b)) != want {
			p.err = archon.Errorf(archon.Internal, "answer of %d bytes to %d keys, must be %d", len(b), p.count, want)
			continue
		}
		p.rows = viewFloats(b)
	}
	if f.Err = f.fan.err(); f.Err != nil {
		f.fan.release()
	}
	f.done(f)
}

// Row is the row of Keys[i], a view of the received buffer that may be written to and
// holds until Release. It must not be called when Err is set.
func (f *FetchCall) Row(i int) []float32 {
	p, pos := f.fan.place(i)
	dim := f.fan.client.dim
	from := pos * dim
	return p.rows[from : from+dim : from+dim]
}

// Release gives the rows' buffers back, from any goroutine, and what Client.Fetch
// returned altogether. After an error it is not needed.
func (f *FetchCall) Release() {
	f.fan.release()
	if f.pool {
		f.pool = false
		f.Keys = nil
		f.fan.client.fetches.Put(f)
	}
}

func wakeFetch(f *FetchCall) { f.wake <- struct{}{} }

// Fetch gives the rows of keys; the caller releases them. It must not be called from a
// done function.
func (c *Client) Fetch(ctx context.Context, keys []uint64) (*FetchCall, error) {
	timeout, err := timeoutOf(ctx)
	if err != nil {
		return nil, err
	}
	f := c.fetches.Get().(*FetchCall)
	f.Keys, f.Timeout, f.pool = keys, timeout, true
	c.GoFetch(f, wakeFetch)
	select {
	case <-f.wake:
	case <-ctx.Done():
		f.fan.cancel(contextError(ctx))
		<-f.wake
	}
	if err := f.Err; err != nil {
		f.Release()
		return nil, err
	}
	return f, nil
}

// timeoutOf gives the time left to ctx's deadline, 0 if there is none.
func timeoutOf(ctx context.Context) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, contextError(ctx)
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0, nil
	}
	if left := time.Until(deadline); left > 0 {
		return left, nil
	}
	return 0, archon.Errorf(archon.DeadlineExceeded, "ps: the deadline has passed")
}

func contextError(ctx context.Context) error {
	return archon.Errorf(archon.CodeOf(ctx.Err()), "ps: given up by the caller")
}
