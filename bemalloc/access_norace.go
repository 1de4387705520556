//go:build !race

package bemalloc

// store and load are for words of a cache, or of the table, that their owner uses in
// every call and others look at, or set, now and then. Plain aligned access is enough on every
// machine that Go runs on; an atomic store is a locked exchange on amd64 and would
// be half the cost of a call.
func store(p *uint32, v uint32) { *p = v }
func load(p *uint32) uint32     { return *p }
