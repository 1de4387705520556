package ps

import (
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// ClientID names a client of a table, for as long as it lives. Two clients never have
// the same.
type ClientID struct {
	Birth uint64 // nanoseconds since 1970 when it was made; 0: none
	Nonce uint64 // drawn
}

// NewClientID draws an id.
func NewClientID() ClientID {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return ClientID{Birth: uint64(time.Now().UnixNano()), Nonce: binary.LittleEndian.Uint64(b[:])}
}

// mostAhead is how far a client's clock may be ahead of a server's.
const mostAhead = time.Hour

// bornAhead refuses a push of a client that was born in the future: when it is forgotten,
// who was born before it and is not known is refused.
func bornAhead(push []byte, now time.Time) error {
	if len(push) < pushHeader {
		return nil // parseRequest says more
	}
	birth := binary.LittleEndian.Uint64(push[fetchHeader:])
	if limit := now.Add(mostAhead).UnixNano(); limit > 0 && birth > uint64(limit) {
		return archon.Errorf(archon.InvalidArgument, "push of a client that was made more than %v after now, %v, by its clock: set the clocks", mostAhead, now.UTC())
	}
	return nil
}

// requestID names one client's Push at one shard. The client counts seq up from 1 for
// each shard. The zero id is none: such a Push is applied as often as it comes.
type requestID struct {
	client ClientID
	seq    uint64
}

// ErrForgotten is what a Push is refused with that the shard can no longer tell to be a
// repetition; nothing of it was applied now, and fetching the rows shows whether it was
// before. See the package comment for how far a shard remembers. From over a connection
// it is known by its code, OutOfRange.
var ErrForgotten = archon.Errorf(archon.OutOfRange, "the push is older than what the shard remembers: fetch the rows to see whether it was applied")

// clients is what a shard remembers of the clients that pushed to it.
type clients struct {
	max     int
	byID    map[ClientID]*window
	used    window // head of the list, last used first
	horizon uint64 // births up to it are forgotten, unless they are in byID
}

func newClients(most int) *clients {
	c := &clients{max: most, byID: map[ClientID]*window{}}
	c.used.prev, c.used.next = &c.used, &c.used
	return c
}

// look tells what is known of a Push.
func (c *clients) look(id requestID) verdict {
	if id.client.Birth == 0 {
		return fresh
	}
	w := c.byID[id.client]
	switch {
	case w != nil:
		return w.look(id.seq)
	case id.client.Birth <= c.horizon:
		return unknown
	}
	return fresh
}

// add notes that a Push, which is fresh, was applied.
func (c *clients) add(id requestID) {
	if id.client.Birth != 0 {
		c.window(id.client).add(id.seq)
	}
}

// window gives the client's window, which is now the last used.
func (c *clients) window(id ClientID) *window {
	w := c.byID[id]
	if w == nil {
		if len(c.byID) >= c.max {
			c.forget(c.used.prev)
		}
		w = &window{id: id}
		c.byID[id] = w
	} else {
		w.unlink()
	}
	w.prev, w.next = &c.used, c.used.next
	w.prev.next, w.next.prev = w, w
	return w
}

func (w *window) unlink() { w.prev.next, w.next.prev = w.next, w.prev }

// forget drops a client. Its Pushes, and those of unknown clients as old, are refused
// from here on.
func (c *clients) forget(w *window) {
	c.horizon = max(c.horizon, w.id.Birth)
	w.unlink()
	delete(c.byID, w.id)
}
