package be

import (
	"slices"
	"sync"
	"time"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/bemalloc"
)

// To register a long buffer takes seconds when memory is tight: all engines of a worker that
// did so would be silent for that long. So it has others do it, and asks again when told.
const (
	maxPreparing = 2           // buffers at a time: the kernel does little more at once
	keepPrepared = time.Second // how long one waits for its message, which may have been given up
)

// preparing is the long buffers that are being registered for messages to come, or are and
// wait for them.
type preparing struct {
	mu   sync.Mutex
	list []*prepared
	stop chan struct{} // closed: no more
	wg   sync.WaitGroup
}

// prepared is one of them.
type prepared struct {
	of    domain
	n     int
	tried bool // buf or err is set
	buf   []byte
	err   error
	taken chan struct{} // closed when a message has either
}

// allocLong gives n bytes of a domain, more than bemalloc.BlockBytes, if they are ready. Else
// they will be: the error is core.ErrComing, and the workers are told.
func (m *memory) allocLong(d domain, n int) ([]byte, error) {
	p, err := m.pool(d)
	if err != nil {
		return nil, err
	}
	if b, ok := p.AllocReady(n); ok { // before what is prepared, which is cold and may not be needed
		return b, nil
	}
	w := &m.preparing
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(w.list, func(x *prepared) bool { return x.of == d && x.n == n }); i >= 0 {
		x := w.list[i]
		if !x.tried {
			return nil, core.ErrComing
		}
		w.list = slices.Delete(w.list, i, i+1)
		close(x.taken)
		return x.buf, x.err
	}
	select {
	case <-w.stop:
		return nil, bemalloc.ErrClosed
	default:
	}
	if len(w.list) < maxPreparing {
		x := &prepared{of: d, n: n, taken: make(chan struct{})}
		w.list = append(w.list, x)
		w.wg.Go(func() { m.prepare(p, x) })
	}
	return nil, core.ErrComing
}

// prepare makes a buffer ready and keeps it for a while.
func (m *memory) prepare(p *bemalloc.Pool, x *prepared) {
	w := &m.preparing
	b, err := p.Alloc(x.n)
	w.mu.Lock()
	x.tried, x.buf, x.err = true, b, err
	w.mu.Unlock()
	m.poke()
	t := time.NewTimer(keepPrepared)
	defer t.Stop()
	select {
	case <-x.taken:
	case <-w.stop:
	case <-t.C:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.list, x); i >= 0 { // nobody took it
		w.list = slices.Delete(w.list, i, i+1)
		if err == nil {
			p.Free(b)
		}
	}
}

// end gives back what is prepared, and waits for what is under way.
func (w *preparing) end() {
	w.mu.Lock()
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	w.mu.Unlock()
	w.wg.Wait()
}
