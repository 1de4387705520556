//go:build race

package bemalloc

import "sync/atomic"

// store and load are atomic for the race detector; see access_norace.go.
func store(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
func load(p *uint32) uint32     { return atomic.LoadUint32(p) }
