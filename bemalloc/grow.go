package bemalloc

import (
	"errors"
	"fmt"
	"time"

	"github.com/byteexpress/byteexpress/mr"
)

const (
	growMax      = 8           // most blocks opened in one growth
	growQuick    = time.Second // growth within this of the last one is demand that continues
	backOffFirst = 10 * time.Millisecond
	backOffMax   = time.Second
)

// flight is one growth, which all goroutines that found no run wait for.
type flight struct {
	done chan struct{}
	err  error
}

// growing is one goroutine's part in a flight: to lead it, or to wait.
type growing struct {
	flight *flight
	lead   bool
}

// growth is the state between flights. Guarded by the run lock.
type growth struct {
	last    time.Time     // end of the last successful growth
	backOff time.Duration // 0: the last attempt succeeded
	until   time.Time     // no attempt before
	bytes   int64         // size of the refused attempt; smaller ones are let through
	err     error         // what attempts get until then
}

// errAbandoned is what waiters get when the leader's Registrar panicked.
var errAbandoned = errors.New("bemalloc: growth abandoned: the registrar panicked")

// board joins the growth under way, or starts one that the caller must lead.
// Called under the run lock.
func (p *Pool) board() growing {
	if f := p.runs.flight; f != nil {
		return growing{flight: f}
	}
	f := &flight{done: make(chan struct{}), err: errAbandoned}
	p.runs.flight = f
	return growing{f, true}
}

// grow leads a flight: it opens one block, or a few while demand continues.
func (p *Pool) grow(f *flight) {
	defer func() {
		p.runs.mu.Lock()
		p.runs.flight = nil
		p.runs.mu.Unlock()
		close(f.done)
	}()
	f.err = p.openBlocks(p.growStep())
}

// growStep gives the blocks to open: one, or up to a thirty-second of what is open
// while demand continues, so that the excess stays small beside the use.
func (p *Pool) growStep() int {
	r := &p.runs
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.growth.last.IsZero() || p.cfg.now().Sub(r.growth.last) > growQuick {
		return 1
	}
	return int(min(max(r.registered>>blockShift/32, 1), growMax))
}

// openBlocks opens up to n blocks for runs. It fails only if it opened none.
func (p *Pool) openBlocks(n int) error {
	for i := range n {
		b, err := p.open(1)
		if err != nil {
			if i > 0 {
				return nil
			}
			return err
		}
		r := &p.runs
		r.mu.Lock()
		bl := p.table.block(b)
		bl.state = blockOpen
		bl.free = ^uint64(0)
		r.freeUnits += unitsPerBlock
		r.freeBlocks++
		r.fit.grow(b)
		r.fit.set(b, unitsPerBlock)
		r.mu.Unlock()
	}
	return nil
}

// openHuge opens n consecutive blocks as a huge run in use.
func (p *Pool) openHuge(n, kind uint32) (first uint32, err error) {
	first, err = p.open(n)
	if err != nil {
		return 0, err
	}
	p.runs.mu.Lock()
	for i := range n {
		p.table.block(first + i).state = blockHuge
	}
	p.useHuge(first, n, kind)
	p.runs.mu.Unlock()
	return first, nil
}

// open backs and registers n consecutive blocks under no lock. On failure
// everything is as before, but for the back-off.
func (p *Pool) open(n uint32) (first uint32, err error) {
	bytes := int64(n) << blockShift
	r := &p.runs
	r.mu.Lock()
	if r.growth.backOff > 0 && bytes >= r.growth.bytes && p.cfg.now().Before(r.growth.until) {
		err = r.growth.err
	} else {
		first, err = p.claim(n)
	}
	r.mu.Unlock()
	if err != nil {
		return 0, err
	}
	opened := false
	defer func() {
		now := p.cfg.now()
		r.mu.Lock()
		if opened {
			p.table.block(first).length = n
			r.registered += bytes
			r.peak = max(r.peak, r.registered)
			r.growth = growth{last: now}
			p.release.opened(now)
		} else {
			if p.table.block(first).state == blockOpening {
				p.unclaim(first, n)
			}
			if err != nil {
				r.growth.backOff = min(max(2*r.growth.backOff, backOffFirst), backOffMax)
				r.growth.until = now.Add(r.growth.backOff)
				r.growth.bytes, r.growth.err = bytes, err
			}
		}
		r.mu.Unlock()
		if opened {
			p.startJanitor()
		}
	}()
	if err = p.attach(first, n); err != nil {
		return first, err // which the deferred function gives back
	}
	opened = true
	return first, nil
}

// claim takes the lowest n consecutive closed blocks within the limits. Called
// under the run lock.
func (p *Pool) claim(n uint32) (uint32, error) {
	r := &p.runs
	bytes := int64(n) << blockShift
	if p.closed.Load() {
		return 0, ErrClosed
	}
	if limit := p.cfg.MaxBytes; limit > 0 && r.committed+bytes > limit {
		return 0, &LimitError{"bemalloc.Config.MaxBytes", r.committed, limit, bytes, &p.room}
	}
	run, b := uint32(0), uint32(0)
	for ; b < r.hi && run < n; b++ {
		if p.table.block(b).state == blockClosed {
			run++
		} else {
			run = 0
		}
	}
	first := b - run
	if uint64(first+n)<<blockShift > p.mem.size {
		return 0, noMemory(fmt.Sprintf("find %d bytes of address space in a reservation of %d", bytes, p.mem.size), nil)
	}
	if err := p.cfg.Budget.take(bytes); err != nil {
		return 0, err
	}
	for i := first; i < first+n; i++ {
		p.table.ensure(i)
		p.table.block(i).state = blockOpening
	}
	r.hi = max(r.hi, first+n)
	r.committed += bytes
	return first, nil
}

// unclaim makes blocks closed again. Called under the run lock.
func (p *Pool) unclaim(first, n uint32) {
	for i := range n {
		bl := p.table.block(first + i)
		*bl = block{state: blockClosed}
	}
	p.runs.committed -= int64(n) << blockShift
	p.cfg.Budget.give(int64(n) << blockShift)
}

// attach backs blocks with memory and registers them with every device. When it
// fails or a Registrar panics, nothing of that is left.
func (p *Pool) attach(first, n uint32) (err error) {
	mem := p.mem.blocks(first, n)
	fellBack, err := commit(mem, p.cfg.HugePages, p.cfg.Access&mr.OnDemand == 0)
	if fellBack {
		p.counters.hugeFallbacks.Add(1)
	}
	if err != nil {
		return noMemory(fmt.Sprintf("back %d bytes", len(mem)), err)
	}
	regions := make([]held, 0, len(p.devices))
	attached := false
	defer func() {
		if !attached {
			p.giveBack(first, n, regions)
		}
	}()
	for i, d := range p.devices {
		start := p.cfg.now()
		reg, err := d.Register(mem, p.cfg.Access)
		p.counters.register.add(p.cfg.now().Sub(start))
		if err != nil {
			p.counters.registerFailures.Add(1)
			return p.registerError(i, int64(len(mem)), err)
		}
		regions = append(regions, held{i, reg})
	}
	p.dbg.fresh(mem)
	if len(regions) == 0 { // plain memory
		regions = append(regions, held{0, mr.Region{Addr: mr.Addr(mem), Length: uint64(len(mem))}})
	}
	for _, h := range regions {
		for i := range n {
			p.table.setRegion(h.device, first+i, h.region)
		}
	}
	attached = true
	return nil
}

func (p *Pool) registerError(device int, bytes int64, err error) error {
	p.runs.mu.Lock()
	have := p.runs.registered
	p.runs.mu.Unlock()
	e := &RegisterError{Err: err, Device: device, Bytes: bytes, Registered: have}
	e.SoftLimit, e.HardLimit, e.HasLimit = memlockLimit()
	return e
}

func (p *Pool) tooLarge(bytes int64) error {
	limit := int64(p.mem.size)
	if m := p.cfg.MaxRegionBytes; m > 0 {
		limit = min(limit, m)
	}
	return fmt.Errorf("%w: %d bytes, one region holds at most %d (Config.MaxRegionBytes or the reservation)", ErrTooLarge, bytes, limit)
}

func noMemory(what string, err error) error {
	if err == nil {
		return fmt.Errorf("%w: %s", ErrNoMemory, what)
	}
	return fmt.Errorf("%w: %s: %w", ErrNoMemory, what, err)
}
