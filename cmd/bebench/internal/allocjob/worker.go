package allocjob

import (
	"time"

	"github.com/byteexpress/byteexpress/bemalloc"
)

// worker is one thread of the definition.
type worker struct {
	pool   *bemalloc.Pool
	heap   *bemalloc.Heap // nil: use the pool's calls
	j      *job
	id     int
	rng    splitMix
	poll   uint64 // mask of the iterations between looks into the mailbox
	slot   []*byte
	own    []batch
	cursor uint32
	out    []*batch // open batch for each destination

	ops, sum, stalls uint64
	allocs, frees    uint64
	end              time.Time
	err              error
}

func newWorker(j *job, id int, pool *bemalloc.Pool) *worker {
	return &worker{
		pool: pool, j: j, id: id, rng: newSplitMix(id), poll: uint64(j.w.Poll - 1),
		slot: make([]*byte, j.w.Slots),
		own:  make([]batch, j.w.Batches),
		out:  make([]*batch, len(j.boxes)),
	}
}

// main is the thread: fill, warm up, work, clean up, with barriers between.
func (w *worker) main(iterations uint64) {
	for s := range w.slot {
		w.slot[s] = w.take(w.j.table[w.rng.next()>>16&(tableSize-1)])
	}
	w.barrier(1, 50*time.Microsecond, false)
	w.work(16 * uint64(w.j.w.Slots))
	w.barrier(2, 100*time.Microsecond, true)
	before := w.allocs + w.frees
	w.work(iterations)
	w.end = time.Now()
	w.ops = w.allocs + w.frees - before
	w.j.ended.Add(1)
	for int(w.j.ended.Load()) < len(w.j.boxes) {
		w.drain()
		pause(100 * time.Microsecond)
	}
	w.barrier(3, 50*time.Microsecond, false)
	w.drain()
	for _, b := range w.out {
		if b != nil {
			w.giveAll(b)
		}
	}
	for _, p := range w.slot {
		w.give(p)
	}
}

// barrier waits for a phase; with draining set it serves its mailbox meanwhile,
// since others may wait for that.
func (w *worker) barrier(phase int32, every time.Duration, draining bool) {
	w.j.arrive()
	for w.j.phase.Load() < phase {
		if draining {
			w.drain()
		}
		time.Sleep(every)
	}
}

// work does n iterations. take and give are written out: the calls, which a C
// compiler would remove, are a third of the time otherwise.
func (w *worker) work(n uint64) {
	if w.err != nil { // a slot is empty
		return
	}
	heap, pool := w.heap, w.pool
	var b []byte
	var err error
	for i := range n {
		r := w.rng.next()
		p := &w.slot[r&uint64(len(w.slot)-1)]
		if len(w.out) > 1 && r>>32&1023 < handed {
			w.hand(*p, r)
		} else {
			w.sum += stamped(*p)
			if heap != nil {
				err = heap.Free(buffer(*p))
			} else {
				err = pool.Free(buffer(*p))
			}
			if err != nil {
				w.fail(err)
			}
			w.frees++
		}
		size := int(w.j.table[r>>16%tableSize])
		if heap != nil {
			b, err = heap.Alloc(size)
		} else {
			b, err = pool.Alloc(size)
		}
		if err != nil {
			*p = nil
			w.fail(err)
			return
		}
		stamp(b)
		if !w.j.edge {
			for o := pageSize; o < size; o += pageSize {
				b[o] = byte(size)
			}
		}
		b[len(b)-1] = byte(size)
		*p = first(b)
		w.allocs++
		if i&w.poll == w.poll {
			w.drain()
		}
	}
}

// take allocates and touches.
func (w *worker) take(size uint32) *byte {
	var b []byte
	var err error
	if w.heap != nil {
		b, err = w.heap.Alloc(int(size))
	} else {
		b, err = w.pool.Alloc(int(size))
	}
	if err != nil {
		w.fail(err)
		return nil
	}
	stamp(b)
	if !w.j.edge {
		for o := pageSize; o < len(b); o += pageSize {
			b[o] = byte(size)
		}
	}
	b[len(b)-1] = byte(size)
	w.allocs++
	return first(b)
}

// give reads the stamp and frees.
func (w *worker) give(p *byte) {
	if p == nil { // after a failure
		return
	}
	w.sum += stamped(p)
	w.frees++
	var err error
	if w.heap != nil {
		err = w.heap.Free(buffer(p))
	} else {
		err = w.pool.Free(buffer(p))
	}
	if err != nil {
		w.fail(err)
	}
}

func (w *worker) giveAll(b *batch) {
	for _, p := range b.p[:b.n] {
		w.give(p)
	}
}

// hand puts a buffer into the open batch for the thread that r chooses.
func (w *worker) hand(p *byte, r uint64) {
	n := uint64(len(w.out))
	to := int((uint64(w.id) + 1 + (r>>48)%(n-1)) % n)
	b := w.out[to]
	if b == nil {
		b = w.freeBatch()
		w.out[to] = b
	}
	b.p[b.n] = p
	if b.n++; b.n == w.j.w.Batch {
		w.out[to] = nil
		w.j.boxes[to].push(b)
	}
}

// freeBatch finds a batch that is not under way.
func (w *worker) freeBatch() *batch {
	for tries := 1; ; tries++ {
		for range w.own {
			b := &w.own[w.cursor]
			w.cursor = (w.cursor + 1) % uint32(len(w.own))
			if !b.busy.Load() {
				b.busy.Store(true)
				b.n = 0
				return b
			}
		}
		w.drain()
		if tries <= 8 {
			yield()
			continue
		}
		w.stalls++
		pause(100 * time.Microsecond)
	}
}

// drain frees what others handed over.
func (w *worker) drain() {
	for b := w.j.boxes[w.id].takeAll(); b != nil; {
		next := b.next
		w.giveAll(b)
		b.busy.Store(false)
		b = next
	}
}

// fail keeps the first error; the thread goes on, so that no other waits for it.
func (w *worker) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
