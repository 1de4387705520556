package ps

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/pkg/errors"
)

// fanout is one request spread over the shards: which key goes where, the part of
// each shard, and how many parts are still out. Its storage is kept from one use to
// the next.
type fanout struct {
	client *Client
	parts  []part
	places []place // by key; not used with one shard
	left   atomic.Int32
	end    func() // the last part is back
}

// part is one shard's part of a request.
type part struct {
	fanout *fanout
	call   archon.Call
	count  int // keys
	rows   []float32
	done   func(*archon.Call) // finish, bound once
}

// place is where a key's row is: row pos of the shard's part.
type place struct {
	shard, pos uint32
}

// split counts the keys of each shard and places them.
func (f *fanout) split(c *Client, keys []uint64) {
	f.client = c
	for len(f.parts) < len(c.shards) {
		f.parts = append(f.parts, part{})
	}
	f.parts = f.parts[:len(c.shards)]
	for i := range f.parts {
		p := &f.parts[i]
		p.count, p.rows = 0, nil
		if p.fanout != f { // new, or moved by append
			p.fanout, p.done = f, p.finish
		}
	}
	if len(c.shards) == 1 {
		f.parts[0].count = len(keys)
		return
	}
	if cap(f.places) < len(keys) {
		f.places = make([]place, len(keys))
	}
	f.places = f.places[:len(keys)]
	for i, key := range keys {
		shard := ShardOf(key, len(f.parts))
		p := &f.parts[shard]
		f.places[i] = place{uint32(shard), uint32(p.count)}
		p.count++
	}
}

// place gives the part and the row in it of key i.
func (f *fanout) place(i int) (*part, int) {
	if len(f.parts) == 1 {
		return &f.parts[0], i
	}
	at := f.places[i]
	return &f.parts[at.shard], int(at.pos)
}

// alloc makes the requests of all parts, with room for the keys and extra bytes a key
// behind them, or of none.
func (f *fanout) alloc(extra int) error {
	for i := range f.parts {
		p := &f.parts[i]
		if p.count == 0 {
			continue
		}
		var err error
		if size := requestHeader + uint64(p.count)*uint64(8+extra); size > math.MaxInt32 {
			err = archon.Errorf(archon.InvalidArgument, "request of %d bytes: name fewer keys at once", size)
		} else {
			p.call.Request, err = f.client.shards[i].Alloc(int(size))
		}
		if err != nil {
			f.dropRequests(i)
			return f.shardError(i, err)
		}
		putRequestHeader(p.call.Request.Payload(), p.count, f.client.dim, i, len(f.parts))
	}
	return nil
}

// dropRequests frees the requests of the first n parts.
func (f *fanout) dropRequests(n int) {
	for i := range f.parts[:n] {
		p := &f.parts[i]
		f.client.shards[i].Free(p.call.Request)
		p.call.Request = archon.Buf{}
	}
}

// putKeys writes the keys into the parts' requests.
func (f *fanout) putKeys(keys []uint64) {
	for i, key := range keys {
		p, pos := f.place(i)
		binary.LittleEndian.PutUint64(p.call.Request.Payload()[requestHeader+8*pos:], key)
	}
}

// start sends the parts; end runs once when all are back, on this goroutine if
// nothing could be sent.
func (f *fanout) start(m archon.Method, timeout time.Duration, end func()) {
	f.end = end
	f.left.Store(1)
	for i := range f.parts {
		p := &f.parts[i]
		if p.count == 0 {
			continue
		}
		p.call.Method, p.call.Timeout = m, timeout
		f.left.Add(1)
		if err := f.client.shards[i].Go(&p.call, p.done); err != nil {
			p.call.Err = err
			f.left.Add(-1)
		}
	}
	f.finish()
}

func (p *part) finish(*archon.Call) { p.fanout.finish() }

func (f *fanout) finish() {
	if f.left.Add(-1) == 0 {
		f.end()
	}
}

// cancel ends the parts that are still out.
func (f *fanout) cancel(err error) {
	for i := range f.parts {
		if f.parts[i].count > 0 {
			f.client.shards[i].Cancel(&f.parts[i].call, err)
		}
	}
}

// err is the error of the first shard that has one.
func (f *fanout) err() error {
	for i := range f.parts {
		if p := &f.parts[i]; p.count > 0 && p.call.Err != nil {
			return f.shardError(i, p.call.Err)
		}
	}
	return nil
}

func (f *fanout) shardError(shard int, err error) error {
	return errors.WithMessagef(err, "ps: shard %d of %d", shard, len(f.parts))
}

// release frees the responses.
func (f *fanout) release() {
	for i := range f.parts {
		p := &f.parts[i]
		p.call.Response.Release()
		p.rows = nil
	}
}
