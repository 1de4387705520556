package ps

import (
	"encoding/binary"
	"math"
	"sync"
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
	layout *layout // as of the last sending
	all    []*part // kept
	parts  []*part // those in use: one by shard, and behind them what reroute adds
	places []place // by key; not used while there is one part
	header int     // bytes before the keys
	extra  int     // bytes a key behind the keys
	method archon.Method
	left   atomic.Int32
	end    func() // the last part is back
	sent   bool   // in this use, or, of a repetition that could not be sent, in the one before

	// Of following a map, see reroute.go.
	deadline time.Time     // zero: none
	pause    time.Duration // the next
	waits    time.Time     // since when it has waited for another map
	held     []*layout     // those of earlier sendings
	failure  error         // why it goes on no more, in place of the parts' errors
	mu       sync.Mutex    // of sending again, and of cancel
	gaveUp   error
	stop     chan struct{} // closed by cancel; nil: nobody waits for it
}

// part is one shard's part of a request.
type part struct {
	fanout   *fanout
	way      *way
	shard    int
	version  uint32 // of the map that it was made by
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

// place is where a key's row is: row pos of a part.
type place struct {
	part, pos uint32
}

// grow makes the parts in use n.
func (f *fanout) grow(n int) {
	for len(f.all) < n {
		p := &part{fanout: f}
		p.done, p.doneOver = p.ended, p.endedOver
		f.all = append(f.all, p)
	}
	f.parts = f.all[:n]
}

// begin readies a part for a shard.
func (p *part) begin(l *layout, shard int) {
	p.way, p.shard, p.version = l.ways[shard], shard, l.version()
	p.count, p.rows, p.err = 0, nil, nil
}

// split counts the keys of each shard and places them.
func (f *fanout) split(c *Client, keys []uint64) {
	f.client, f.layout, f.sent, f.failure, f.gaveUp = c, c.acquire(), false, nil, nil
	l := f.layout
	f.grow(len(l.ways))
	for i, p := range f.parts {
		p.begin(l, i)
	}
	f.places = f.places[:0]
	if len(f.parts) == 1 {
		f.parts[0].count = len(keys)
		return
	}
	if cap(f.places) < len(keys) {
		f.places = make([]place, len(keys))
	}
	f.places = f.places[:len(keys)]
	for i, key := range keys {
		shard := l.owner(key)
		p := f.parts[shard]
		f.places[i] = place{uint32(shard), uint32(p.count)}
		p.count++
	}
}

// place gives the part and the row in it of key i.
func (f *fanout) place(i int) (*part, int) {
	if len(f.parts) == 1 {
		return f.parts[0], i
	}
	at := f.places[i]
	return f.parts[at.part], int(at.pos)
}

// alloc makes the requests of all parts: a header, the keys, and extra bytes a key
// behind them. After an error nothing is to be done.
func (f *fanout) alloc(header, extra int) error {
	f.header, f.extra = header, extra
	for i, p := range f.parts {
		if p.count == 0 {
			continue
		}
		if err := f.allocPart(p); err != nil {
			for _, made := range f.parts[:i] {
				if made.count > 0 {
					made.way.drop(made)
				}
			}
			f.client.release(f.layout)
			return f.shardError(p, err)
		}
	}
	return nil
}

func (f *fanout) allocPart(p *part) error {
	size := uint64(f.header) + uint64(p.count)*uint64(8+f.extra)
	if size > math.MaxInt32 {
		return archon.Errorf(archon.InvalidArgument, "request of %d bytes: name fewer keys at once", size)
	}
	if err := p.way.alloc(p, int(size)); err != nil {
		return err
	}
	putRequestHeader(p.request, p.count, f.client.dim, p.shard, len(f.layout.ways))
	if p.version != 0 {
		putMapVersion(p.request, p.version)
	}
	return nil
}

// putKeys writes the keys into the parts' requests.
func (f *fanout) putKeys(keys []uint64) {
	for i, key := range keys {
		p, pos := f.place(i)
		binary.LittleEndian.PutUint64(p.request[f.header+8*pos:], key)
	}
}

// number gives a push's part the next id of its shard, or, of a repetition, that of the
// last time.
func (p *part) number(again bool) {
	if !again || p.seq == 0 {
		p.seq = p.way.number.Add(1)
	}
	putRequestID(p.request, requestID{p.fanout.client.id, p.seq})
}

// start sends the parts; end runs once when all are back, on this goroutine if
// nothing could be sent.
func (f *fanout) start(m archon.Method, timeout time.Duration, end func()) {
	f.method, f.end, f.sent = m, end, true
	f.setDeadline(timeout)
	f.left.Store(1)
	for _, p := range f.parts {
		if p.count > 0 {
			f.left.Add(1)
			p.way.send(p, m, timeout)
		}
	}
	f.finish()
}

func (p *part) ended(call *archon.Call) { p.take(&call.Response, call.Err) }

func (p *part) endedOver(call *channel.Call) { p.take(&call.Response, call.Err) }

// take takes how the part ended.
func (p *part) take(r *archon.Response, err error) {
	p.response, p.err = *r, err
	*r = archon.Response{}
	if err != nil {
		p.err = asWrongMap(err)
	}
	p.fanout.finish()
}

func (f *fanout) finish() {
	if f.left.Add(-1) == 0 && !f.goesOn() {
		f.over()
	}
}

func (f *fanout) over() {
	f.client.release(f.layout)
	for _, l := range f.held {
		f.client.release(l)
	}
	f.held = f.held[:0]
	f.end()
}

// cancel ends the parts that are still out, and has no others sent.
func (f *fanout) cancel(err error) {
	f.mu.Lock()
	f.gaveUp = err
	if f.stop != nil {
		close(f.stop)
		f.stop = nil
	}
	parts := f.parts
	f.mu.Unlock()
	for _, p := range parts {
		if p.count > 0 {
			p.way.cancel(p, err)
		}
	}
}

// err is why the request failed, or the error of the first part that has one.
func (f *fanout) err() error {
	if f.failure != nil {
		return f.failure
	}
	for _, p := range f.parts {
		if p.count > 0 && p.err != nil {
			return f.shardError(p, p.err)
		}
	}
	return nil
}

func (f *fanout) shardError(p *part, err error) error {
	return errors.WithMessagef(err, "ps: shard %d of %d", p.shard, len(f.layout.ways))
}

// release frees the responses.
func (f *fanout) release() {
	for _, p := range f.parts {
		p.response.Release()
		p.rows = nil
	}
}
