package bemalloc

// BlockBytes is how much memory a pool registers at once, in bytes. A longer buffer takes a
// registration of its own.
const BlockBytes = blockSize

// AllocReady is Alloc of more than BlockBytes that takes no longer than that of a short
// buffer: it gives what was freed, and is still registered. It is false if there is no
// buffer of that many blocks, and always with Config.Debug, which looks at all of its memory.
func (p *Pool) AllocReady(n int) ([]byte, bool) {
	if n <= blockSize || uint64(n) > p.mem.size || p.dbg != nil || p.closed.Load() {
		return nil, false
	}
	blocks := uint32(roundUp(int64(n), blockSize) >> blockShift)
	p.runs.mu.Lock()
	defer p.runs.mu.Unlock()
	first, ok := p.takeHuge(blocks)
	if !ok {
		return nil, false
	}
	p.useHuge(first, blocks, kindHead)
	return p.mem.view(uint64(first)<<blockShift, n), true
}
