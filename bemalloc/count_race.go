//go:build race

package bemalloc

import "sync/atomic"

// setCount stores a magazine's count; the race detector wants it atomic.
func setCount(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
