//go:build !race

package bemalloc

// setCount stores a magazine's count, which other goroutines load atomically for
// Stats. A plain aligned store is enough on every machine that Go runs on; an
// atomic one is a locked exchange on amd64 and would be half the cost of a call.
func setCount(p *uint32, v uint32) { *p = v }
