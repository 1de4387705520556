package be

import (
	"sync"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// maxSendSGE is how many segments a send request of ours has at most, if the device
// gives that many; more only makes its queue larger.
const maxSendSGE = 30

// PostGather sends head and the parts, one after another, as one message, without
// copying them together. All are memory from the node's Alloc, or lie within it;
// any may be empty.
//
// done runs once, on the worker's goroutine: it must not block. Until then the
// memory may be read, not written, and not freed; afterwards it is the caller's,
// whatever done was told. (So an error comes a little later than that of Post: when
// the device no longer uses the memory.) The slice of parts itself is the caller's
// again at once. An error of PostGather itself means that nothing
// was done, and done is not called.
func (s *Socket) PostGather(head []byte, parts [][]byte, done func(error)) error {
	return s.postGather(head, parts, 0, done)
}

func (s *Socket) postGather(head []byte, parts [][]byte, tag uint64, done func(error)) error {
	n := len(head)
	for _, b := range parts {
		n += len(b)
	}
	if n > s.conn.limit {
		return tooLarge(n, s.conn.limit)
	}
	if s.ended.Load() {
		return s.err
	}
	g := newGathering()
	ok := g.add(s.conn.n.mem, head)
	for i := 0; ok && i < len(parts); i++ {
		ok = g.add(s.conn.n.mem, parts[i])
	}
	if !ok {
		g.recycle()
		return ErrNotRegistered
	}
	g.user = done
	var unuse func()
	if o := s.conn.n.mem.owners; o != nil {
		end, err := o.share("PostGather", append([][]byte{head}, parts...), true)
		if err != nil {
			g.recycle()
			return err
		}
		g.user, unuse = func(err error) { end(); tell(done, err) }, end
	}
	if !s.conn.w.submit(&command{kind: cmdGather, conn: s.conn, sock: s.core, commandRest: &g.commandRest, tag: tag, done: g.done}) {
		g.recycle()
		if unuse != nil {
			unuse()
		}
		return ErrClosed
	}
	return nil
}

// gathering is the list of segments of one PostGather.
type gathering struct {
	commandRest
	done func(error) // finish
	user func(error)
}

var gatherings sync.Pool

func newGathering() *gathering {
	if g, ok := gatherings.Get().(*gathering); ok {
		return g
	}
	g := new(gathering)
	g.done = g.finish
	return g
}

func (g *gathering) recycle() {
	g.list, g.user = g.list[:0], nil
	gatherings.Put(g)
}

func (g *gathering) finish(err error) {
	user := g.user
	g.recycle()
	tell(user, err)
}

// add appends a part, to the segment before it if the two touch. It reports false
// for memory of somebody else.
func (g *gathering) add(mem *memory, b []byte) bool {
	if len(b) == 0 {
		return true
	}
	key, err := mem.LKey(b)
	if err != nil {
		return false
	}
	addr := mr.Addr(b)
	if n := len(g.list); n > 0 {
		last := &g.list[n-1]
		if last.LKey == key && last.Addr+uint64(last.Length) == addr {
			last.Length += uint32(len(b))
			return true
		}
	}
	g.list = append(g.list, qp.SGE{Addr: addr, Length: uint32(len(b)), LKey: key})
	return true
}
