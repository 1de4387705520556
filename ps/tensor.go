package ps

import (
	"context"
	"errors"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/be"
)

// Tensor reads one static tensor of a server (Tensors). Over ByteExpress it learns once
// where the tensor is, and READs it from there: the server's processor takes no part, until
// the tensor is replaced, or was not read for a while. Over TCP, and whenever that fails, it
// calls. One goroutine uses a Tensor at a time; steady use allocates nothing.
type Tensor struct {
	conn *archon.Client
	ch   *channel.Channel
	name archon.Encoder
	key  uint64 // of the name

	at    location
	of    *archon.Client // to whose server at belongs; nil: nothing is known
	until time.Time      // at is good
	never *archon.Client // whose server has no memory that peers read

	node  *be.Node // that buf is of
	buf   []byte
	resp  archon.Response // what was read last, if it was by a call
	inv   archon.Invocation
	call  channel.Call
	wake  chan struct{}
	woken func(*channel.Call)
	stats TensorStats
}

// TensorStats counts what a Tensor did.
type TensorStats struct {
	Reads    uint64 // that ended well, by READ
	Calls    uint64 // that ended well, by a call
	Places   uint64 // calls that asked where the tensor is
	Replaced uint64 // READs that found an edition that was replaced
	Invalid  uint64 // READs that found something else than the edition, or part of it
	Failed   uint64 // READs that the transport did not do
}

// OpenTensor gives a reader of the tensor of that name at the server of a connection, which
// is not the reader's to close.
func OpenTensor(c *archon.Client, name string) *Tensor { return newTensor(&Tensor{conn: c}, name) }

// OpenChannelTensor likewise by a channel: it reads at any replica that has the tensor, at
// the same one while that can be reached.
func OpenChannelTensor(ch *channel.Channel, name string) *Tensor {
	return newTensor(&Tensor{ch: ch}, name)
}

func newTensor(t *Tensor, name string) *Tensor {
	t.name, t.key, t.wake = archon.Bytes(name), tensorKey(name), make(chan struct{}, 1)
	t.woken = func(*channel.Call) { t.wake <- struct{}{} }
	return t
}

// Read gives the newest edition, whole as it was published: its version and its data, which
// is the caller's to read and write until the next Read or Close. The error is an
// *archon.Error, or an *channel.Error that wraps one: NotFound if the server has no such
// tensor.
func (t *Tensor) Read(ctx context.Context) (version uint64, data []byte, err error) {
	t.resp.Release()
	if client := t.client(); client != nil && client != t.never {
		if s := client.BESocket(); s != nil && s.CanRead() {
			version, data, err = t.read(ctx, client, s)
			if err == nil || ctx.Err() != nil || errors.Is(err, archon.NotFound) {
				return version, data, err
			}
		}
	}
	return t.ask(ctx)
}

// Close gives the buffer back. The Tensor may be used again.
func (t *Tensor) Close() {
	t.resp.Release()
	t.dropBuffer()
	t.of, t.never = nil, nil
}

// Stats gives the counts so far. It is for the goroutine that reads.
func (t *Tensor) Stats() TensorStats { return t.stats }

func (t *Tensor) client() *archon.Client {
	if t.ch != nil {
		return t.ch.Client(t.key | 1)
	}
	return t.conn
}

func (t *Tensor) dropBuffer() {
	if t.buf != nil {
		t.node.Free(t.buf)
		t.buf = nil
	}
}

// maxEditions is how many editions in a row a Read may find replaced before it calls.
const maxEditions = 3

var errNewEditions = archon.Errorf(archon.Aborted, "the tensor is replaced faster than it is read")

// read READs the tensor.
func (t *Tensor) read(ctx context.Context, client *archon.Client, s *be.Socket) (uint64, []byte, error) {
	for range maxEditions {
		now := time.Now()
		if t.of != client || now.After(t.until) {
			if err := t.locate(ctx, client, s, now); err != nil {
				return 0, nil, err
			}
		}
		err := s.Read(ctx, &t.at.token, 0, t.buf)
		if err != nil {
			t.buf, t.of = nil, nil // the buffer is gone
			t.stats.Failed++
			return 0, nil, err
		}
		var h edition
		err = h.parse(t.buf, t.key)
		if err == nil && h.version != t.at.version {
			err = archon.Errorf(archon.DataLoss, "version %d of the tensor where %d was", h.version, t.at.version)
		}
		if err == nil && h.state != 0 {
			t.of = nil
			t.stats.Replaced++
			continue
		}
		data := t.buf[tensorHeader:]
		if err == nil {
			err = h.checkData(data)
		}
		if err != nil {
			t.of = nil
			t.stats.Invalid++
			return 0, nil, err
		}
		t.until = now.Add(t.at.keep / 2) // it was not replaced then
		t.stats.Reads++
		return h.version, data, nil
	}
	return 0, nil, errNewEditions
}

// locate asks where the tensor is, and makes room for it.
func (t *Tensor) locate(ctx context.Context, client *archon.Client, s *be.Socket, now time.Time) error {
	t.of = nil
	t.inv = archon.Invocation{Method: MethodTensorPlace, Request: t.name}
	resp, err := client.Do(ctx, &t.inv)
	if err != nil {
		if errors.Is(err, archon.Unimplemented) {
			t.never = client
		}
		return err
	}
	err = t.at.parse(resp.Payload())
	resp.Release()
	if err != nil {
		return err
	}
	t.stats.Places++
	if t.node != s.Node() || uint64(len(t.buf)) != t.at.bytes {
		t.dropBuffer()
		t.node = s.Node()
		if t.buf, err = t.node.Alloc(int(t.at.bytes)); err != nil {
			t.buf = nil
			return err
		}
	}
	t.of, t.until = client, now.Add(t.at.keep/2)
	return nil
}

// ask calls for the tensor.
func (t *Tensor) ask(ctx context.Context) (uint64, []byte, error) {
	err := t.do(ctx)
	if err != nil {
		return 0, nil, err
	}
	b := t.resp.Payload()
	var h edition
	if err = h.parse(b, t.key); err == nil {
		err = h.checkData(b[tensorHeader:])
	}
	if err != nil {
		t.resp.Release()
		return 0, nil, err
	}
	t.stats.Calls++
	return h.version, b[tensorHeader:], nil
}

func (t *Tensor) do(ctx context.Context) (err error) {
	if t.ch == nil {
		t.inv = archon.Invocation{Method: MethodTensor, Request: t.name}
		t.resp, err = t.conn.Do(ctx, &t.inv)
		return err
	}
	c := &t.call
	c.Method, c.Request, c.Idempotent, c.Affinity = MethodTensor, t.name, true, t.key|1
	if c.Timeout, err = timeoutOf(ctx); err != nil {
		return err
	}
	t.ch.Go(c, t.woken)
	select {
	case <-t.wake:
	case <-ctx.Done():
		t.ch.Cancel(c, contextError(ctx))
		<-t.wake
	}
	t.resp, c.Response = c.Response, archon.Response{}
	return c.Err
}
