package bemalloc

import "sync"

// quota is the account of a heap with a quota, and its spans. It lives until the
// heap is closed and its last buffer is freed.
type quota struct {
	id      uint32 // its number; spans and runs record it
	max     int64
	central [numClasses]central
	room    waitRoom

	mu      sync.Mutex
	used    int64 // bytes of buffers in use, rounded up
	retired bool  // its heap is gone
}

// addQuota makes an account. Called under heapsMu.
func (p *Pool) addQuota(limit int64) *quota {
	q := &quota{max: limit}
	q.room.init()
	all := append([]*quota(nil), *p.quotas.Load()...)
	i := 0
	for i < len(all) && all[i] != nil {
		i++
	}
	if i == len(all) {
		all = append(all, nil)
	}
	all[i] = q
	q.id = uint32(i + 1)
	for c := range q.central {
		q.central[c].class, q.central[c].owner = uint32(c), q.id
	}
	p.quotas.Store(&all)
	return q
}

// quota gives the account of a number, or nil.
func (p *Pool) quota(id uint32) *quota {
	all := *p.quotas.Load()
	if id == 0 || int(id) > len(all) {
		return nil
	}
	return all[id-1]
}

// retireQuota ends the account of a heap that is gone, now or with its last
// buffer.
func (p *Pool) retireQuota(q *quota) {
	q.mu.Lock()
	q.retired = true
	done := q.used == 0
	q.mu.Unlock()
	if done {
		p.removeQuota(q)
	}
}

func (p *Pool) removeQuota(q *quota) {
	if !p.gone.Load() {
		for c := range q.central {
			p.drain(&q.central[c])
		}
	}
	p.heapsMu.Lock()
	defer p.heapsMu.Unlock()
	all := append([]*quota(nil), *p.quotas.Load()...)
	if all[q.id-1] == q {
		all[q.id-1] = nil
		p.quotas.Store(&all)
	}
}

// charge counts bytes against the quota.
func (q *quota) charge(bytes int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used+bytes > q.max {
		return &LimitError{"heap quota", q.used, q.max, bytes, &q.room}
	}
	q.used += bytes
	return nil
}

// credit gives bytes back to the quota.
func (p *Pool) credit(q *quota, bytes int64) {
	if q == nil {
		return
	}
	q.mu.Lock()
	q.used -= bytes
	last := q.retired && q.used == 0
	q.mu.Unlock()
	q.room.notify()
	if last {
		p.removeQuota(q)
	}
}

// allocOwned is allocate for a heap with a quota.
func (p *Pool) allocOwned(q *quota, n, align int) (off uint64, err error) {
	small := n <= maxSmall && align <= maxSmall
	var bytes int64
	var class uint32
	switch {
	case small:
		class = classAligned(uint(n), uint(align))
		bytes = int64(classes[class].size)
	case n <= blockSize:
		bytes = roundUp(int64(max(n, 1)), unitSize)
	case uint64(n) > p.mem.size:
		return 0, p.tooLarge(int64(n))
	default:
		bytes = roundUp(int64(n), blockSize)
	}
	if err := q.charge(bytes); err != nil {
		return 0, err
	}
	if small {
		var obj [1]uint32
		_, err = p.take(&q.central[class], obj[:])
		off = uint64(obj[0]) << objShift
	} else if off, err = p.allocLarge(n, align, kindOHead); err == nil {
		p.table.span(uint32(off >> unitShift)).owner = q.id
	}
	if err != nil {
		p.credit(q, bytes)
	}
	return off, err
}

// freeOwned frees the object at off, in a unit of the word w, of some heap with a
// quota.
func (p *Pool) freeOwned(w unitWord, off uint64) error {
	s := p.table.span(uint32(off>>unitShift) - w.back())
	q := p.quota(s.owner)
	if q == nil || !classes[s.class%numClasses].startsObject(w.within(off)) {
		p.counters.badFrees.Add(1)
		return ErrBadFree
	}
	class := s.class
	if p.putBack(&q.central[class], []uint32{uint32(off >> objShift)}) > 0 {
		return ErrDoubleFree
	}
	p.credit(q, int64(classes[class].size))
	return nil
}
