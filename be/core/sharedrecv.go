package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
)

var (
	// ErrShared says that a shared receive queue has no receives left to promise to one
	// more engine.
	ErrShared = errors.New("every shared receive is promised to an engine")
	// ErrLent says that receives have to come back before one more engine has its own:
	// they were asked for.
	ErrLent = errors.New("shared receives are lent to other engines")
)

// shareEpoch is how often shares are looked over while something is lent. An engine
// that received nothing for one to two of these is idle.
const shareEpoch = 50 * time.Millisecond

// SharedRecv is a shared receive queue with its buffers, and the account of who may
// use them. One goroutine drives it, the same as its engines.
type SharedRecv struct {
	shares
	entries
	srq     qp.SRQ
	mem     Memory
	idBase  uint64
	touch   func(Handler)
	batch   []qp.RecvWR
	state   []entryState
	free    []int32   // entries that are not posted
	chunk   int       // so many of them are posted at once
	members []*Engine // in any order
	sweepAt time.Duration

	seq      uint64   // receives ever posted
	newest   uint64   // how many of them had been posted with the newest that is complete
	broken   []uint64 // the value of seq when a queue pair broke that may have kept a receive
	forgiven int      // the first of broken for which no receive is counted as lost
}

// entryState is what the queue remembers of one receive.
type entryState struct {
	posted bool
	seq    uint64 // how many were posted before it
}

// SharedConfig says what a shared receive queue is like.
type SharedConfig struct {
	Receives int    // at most what the device queue takes
	Least    int    // of them promised to each engine, at least 4
	Buffer   int    // bytes of an eager message at most
	IDBase   uint64 // ORed into the ID of each receive; the low 32 bits must be 0
	// Touch is called with the handler of an engine whose Flush is due. It must not
	// call Flush itself.
	Touch func(Handler)
}

// NewSharedRecv posts all receives to srq, a queue of nobody else's. The caller closes
// srq before Close.
func NewSharedRecv(cfg SharedConfig, srq qp.SRQ, mem Memory) (*SharedRecv, error) {
	p := &SharedRecv{srq: srq, mem: mem, idBase: cfg.IDBase, touch: cfg.Touch, chunk: max(min(cfg.Receives/4, 32), 1), sweepAt: Never}
	slab, err := mem.Alloc(cfg.Receives * wire.HeaderLen)
	if err != nil {
		return nil, err
	}
	key, err := mem.LKey(slab)
	if err != nil {
		mem.Free(slab)
		return nil, err
	}
	p.entries = newEntries(cfg.Receives, cfg.Buffer, slab, key)
	p.batch, p.state, p.free = make([]qp.RecvWR, 0, cfg.Receives), make([]entryState, cfg.Receives), make([]int32, cfg.Receives)
	for i := range p.free {
		p.free[i] = int32(len(p.free) - 1 - i)
	}
	p.shares = shares{least: cfg.Least, total: cfg.Receives, epoch: 2}
	if err = p.post(); err == nil && len(p.free) > 0 {
		err = lacking(mem, cfg.Buffer)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close gives the memory back. The device's queue is closed.
func (p *SharedRecv) Close() {
	p.entries.free(p.mem)
	p.mem.Free(p.slab)
}

// post posts the free entries for which there is memory.
func (p *SharedRecv) post() error {
	p.batch = p.batch[:0]
	n := len(p.free)
	for ; n > 0; n-- {
		i := int(p.free[n-1])
		if p.bufs[i] == nil && !p.refill(i, p.mem) {
			break
		}
		p.batch = append(p.batch, qp.RecvWR{ID: p.idBase | uint64(i), SGEs: p.sges[i][:]})
	}
	if len(p.batch) == 0 {
		return nil
	}
	k, err := p.srq.PostRecv(p.batch)
	for range k {
		last := len(p.free) - 1
		p.state[p.free[last]] = entryState{true, p.seq}
		p.free = p.free[:last]
		p.seq++
	}
	p.posted += k
	return err
}

// take takes a completed receive and gives its entry, and how many receives had been
// posted with it.
func (p *SharedRecv) take(id uint32) (entry int, seq uint64, ok bool) {
	if int64(id) >= int64(len(p.state)) || !p.state[id].posted {
		return 0, 0, false
	}
	st := &p.state[id]
	st.posted = false
	p.newest = max(p.newest, st.seq+1)
	return int(id), st.seq + 1, true
}

// recycle has an entry posted again some time.
func (p *SharedRecv) recycle(entry int) { p.free = append(p.free, int32(entry)) }

// Discard takes the completion of a receive that no engine is there for any more.
func (p *SharedRecv) Discard(c *cq.Completion) {
	if entry, _, ok := p.take(uint32(c.ID)); ok {
		p.posted--
		p.recycle(entry)
		p.post()
	}
}

// enter grants an engine its least.
func (p *SharedRecv) enter(e *Engine) error {
	e.share.most = p.least
	if e.cfg.Lend {
		e.share.most = p.total
	}
	if p.out+p.least > p.posted {
		if err := p.post(); err != nil {
			return err
		}
	}
	if !p.room() && len(p.broken) > 0 {
		p.find()
	}
	if !p.room() {
		if len(p.broken) > p.forgiven && (p.n+1)*p.least <= len(p.state) {
			p.rouse()
			return ErrLent
		}
		return fmt.Errorf("%w: %d receives, %d for each of %d engines", ErrShared, p.total, p.least, p.n)
	}
	if !p.join(&e.share) {
		for _, m := range p.members {
			if m.share.recalled = false; p.recall(&m.share) {
				p.ask(m)
			}
		}
		return ErrLent
	}
	e.newest = p.newest // it took none of those before
	p.members = append(p.members, e)
	return nil
}

// rouse has the peers of all engines say something: what they take of the queue shows
// which receives were kept.
func (p *SharedRecv) rouse() {
	for _, e := range p.members {
		if e.state == engineUp && !e.pinged {
			e.ping(true)
			e.control(control{typ: wire.Ping})
			p.touch(e.h)
		}
	}
}

// exit takes a share back. The engine's queue pair is closed.
func (p *SharedRecv) exit(e *Engine, broken bool) {
	i := slices.Index(p.members, e)
	if i < 0 {
		return
	}
	last := len(p.members) - 1
	p.members[i], p.members[last] = p.members[last], nil
	p.members = p.members[:last]
	if p.leave(&e.share, broken) {
		p.broken = append(p.broken, p.seq)
	}
	if len(p.broken) > len(p.state) { // no more can be kept than there are
		p.pardon(1)
		p.broken, p.forgiven = slices.Delete(p.broken, 0, 1), p.forgiven-1
	}
	if len(p.members) == 0 {
		// Nothing is received any more that would show which receives were kept, if any.
		// The next engines are let in all the same: what they receive shows it.
		p.pardon(len(p.broken))
	}
}

// pardon has no receives counted as lost for the first n of broken.
func (p *SharedRecv) pardon(n int) {
	if more := n - p.forgiven; more > 0 {
		p.total += more
		p.posted += more
		p.forgiven = n
	}
}

// Deadline is when Tick wants to be called next, Never if it does not.
func (p *SharedRecv) Deadline() time.Duration { return p.sweepAt }

// granted has shares looked over from now on, if there is anything to find.
func (p *SharedRecv) granted(now time.Duration, s *share) {
	if p.sweepAt == Never && (s.size > p.least || len(p.broken) > 0) {
		p.sweepAt = now + shareEpoch
	}
}

// ask has the peer of an engine give back what it has above the least.
func (p *SharedRecv) ask(e *Engine) {
	if e.state == engineUp {
		e.control(control{typ: wire.Recall, seq: uint32(p.least)})
		e.stats.Recalls++
		p.touch(e.h)
	}
}

// Tick looks over the shares: those that rest shrink, and receives that were kept by
// broken queue pairs are found.
func (p *SharedRecv) Tick(now time.Duration) {
	if now < p.sweepAt {
		return
	}
	p.epoch++
	p.active = 0
	lent := false
	for _, e := range p.members {
		if e.share.active(&p.shares) {
			p.active++
		}
		if p.rest(&e.share) {
			p.ask(e)
		}
		lent = lent || e.share.size > p.least
	}
	p.find()
	p.sweepAt = Never
	if lent {
		p.sweepAt = now + shareEpoch
	}
}

// find takes receives back that broken queue pairs have kept. Receives are taken in
// the order of posting, and a queue pair has one message at a time: when each that is
// left has completed one of the receives after one, those before that are not complete
// never will be.
func (p *SharedRecv) find() {
	oldest, n := p.newest, 0
	for _, e := range p.members {
		oldest = min(oldest, e.newest)
	}
	for n < len(p.broken) && p.broken[n] < oldest {
		n++
	}
	if n == 0 {
		return
	}
	found := 0
	for i := range p.state {
		if st := &p.state[i]; st.posted && st.seq < p.broken[n-1] {
			st.posted = false
			p.recycle(i)
			found++
		}
	}
	p.pardon(n)
	p.broken, p.forgiven = slices.Delete(p.broken, 0, n), p.forgiven-n
	p.posted -= found // these were not
}
