package ps

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/pkg/errors"
)

// fanout is one request spread over the shards: which key goes where, the part of
// each shard, and how many parts are still out. Its storage is kept from one use to
// the next.
type fanout struct {
	client *Client
	parts  []part
	places []place // by key; not used with one shard
	header int     // bytes before the keys
	left   atomic.Int32
	end    func() // the last part is back
}

// part is one shard's part of a request.
type part struct {
	fanout   *fanout
	call     archon.Call
	repeated channel.Call // in place of call, if the shard is behind a channel
	request  []byte       // payload; of repeated, kept from one use to the next
	response archon.Response
	err      error
	seq      uint64 // of the last push
	count    int    // keys
	rows     []float32
	done     func(*archon.Call)  // ended, bound once
	doneOver func(*channel.Call) // likewise
}

// Size implements archon.Encoder.
func (p *part) Size() int { return len(p.request) }

// Append implements archon.Encoder.
func (p *part) Append(dst []byte) ([]byte, error) { return append(dst, p.request...), nil }

// place is where a key's row is: row pos of the shard's part.
type place struct {
	shard, pos uint32
}

// split counts the keys of each shard and places them.
func (f *fanout) split(c *Client, keys []uint64) {
	f.client = c
	if len(f.parts) != len(c.shards) {
		f.parts = make([]part, len(c.shards))
	}
	for i := range f.parts {
		p := &f.parts[i]
		p.count, p.rows, p.err = 0, nil, nil
		if p.fanout != f || p.done == nil {
			p.fanout, p.done, p.doneOver = f, p.ended, p.endedOver
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
		shard := c.owner(key)
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

// alloc makes the requests of all parts: a header, the keys, and extra bytes a key
// behind them.
func (f *fanout) alloc(header, extra int) error {
	f.header = header
	for i := range f.parts {
		p := &f.parts[i]
		if p.count == 0 {
			continue
		}
		var err error
		if size := uint64(header) + uint64(p.count)*uint64(8+extra); size > math.MaxInt32 {
			err = archon.Errorf(archon.InvalidArgument, "request of %d bytes: name fewer keys at once", size)
		} else {
			err = f.client.shards[i].alloc(p, int(size))
		}
		if err != nil {
			f.dropRequests(i)
			return f.shardError(i, err)
		}
		putRequestHeader(p.request, p.count, f.client.dim, i, len(f.parts))
		if f.client.shardOf != nil {
			putMapVersion(p.request, f.client.shardOf.Version)
		}
	}
	return nil
}

// dropRequests frees the requests of the first n parts.
func (f *fanout) dropRequests(n int) {
	for i := range f.parts[:n] {
		if p := &f.parts[i]; p.count > 0 {
			f.client.shards[i].drop(p)
		}
	}
}

// putKeys writes the keys into the parts' requests.
func (f *fanout) putKeys(keys []uint64) {
	for i, key := range keys {
		p, pos := f.place(i)
		binary.LittleEndian.PutUint64(p.request[f.header+8*pos:], key)
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
		f.left.Add(1)
		f.client.shards[i].send(p, m, timeout)
	}
	f.finish()
}

func (p *part) ended(call *archon.Call) {
	p.response, p.err = call.Response, call.Err
	call.Response = archon.Response{}
	p.fanout.finish()
}

func (p *part) endedOver(call *channel.Call) {
	p.response, p.err = call.Response, call.Err
	call.Response = archon.Response{}
	p.fanout.finish()
}

func (f *fanout) finish() {
	if f.left.Add(-1) == 0 {
		f.end()
	}
}

// cancel ends the parts that are still out.
func (f *fanout) cancel(err error) {
	for i := range f.parts {
		if f.parts[i].count > 0 {
			f.client.shards[i].cancel(&f.parts[i], err)
		}
	}
}

// err is the error of the first shard that has one.
func (f *fanout) err() error {
	for i := range f.parts {
		if p := &f.parts[i]; p.count > 0 && p.err != nil {
			return f.shardError(i, asWrongMap(p.err))
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
		p.response.Release()
		p.rows = nil
	}
}
