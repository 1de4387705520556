package bemalloc

import (
	"fmt"
	"time"

	"github.com/byteexpress/byteexpress/mr"
)

// HugeMode says how a pool asks for huge pages. Only Linux has them; elsewhere
// every mode is HugeOff.
type HugeMode uint8

const (
	// HugeAdvise asks for transparent huge pages (MADV_HUGEPAGE). The default.
	HugeAdvise HugeMode = iota
	// HugeOff uses the system's small pages.
	HugeOff
	// HugeTLB takes 2 MiB pages from the kernel's reserved pool; a block that
	// finds it empty falls back to HugeAdvise and is counted.
	HugeTLB
)

// MinBytes is the least that Config.MaxBytes can be: one block.
const MinBytes = int64(blockSize)

// A pool reserves reserveDefault of address space, or reserveFactor times its
// limit if that is less.
const (
	reserveDefault = int64(64) << 30
	reserveFactor  = 8
)

// Config describes a pool. The zero value serves plain memory. It is copied by
// New.
type Config struct {
	// Registrar makes blocks known to a device, with Access. Nil: plain memory,
	// whose regions have no keys. It is called under no lock, from the goroutine
	// whose allocation needs memory, or from the pool's own.
	Registrar mr.Registrar
	// Also registers every block with further devices; their keys come from MROn.
	Also []mr.Registrar
	// Access of every block. A pool is one key domain: expose receive buffers to
	// remote writes from one pool, and keep local data in another.
	Access mr.Access

	// MaxBytes bounds the registered bytes. 0: no limit of the pool's own. Less
	// than MinBytes is an error.
	MaxBytes int64
	// Budget bounds them together with those of other pools. Nil: by none.
	Budget *Budget
	// ReserveBytes of address space, the most that the pool can ever serve. 0: eight
	// times MaxBytes, so that long runs find room between others, but at most 64 GiB,
	// or MaxBytes if that is more. The most possible is 256 GiB. It is halved until
	// the system grants it. Each GiB costs 64 KiB of Go memory, touched as it comes
	// into use.
	ReserveBytes int64
	// HugePages says how to ask for huge pages.
	HugePages HugeMode
	// RetainBytes of free blocks stay registered. 0: the larger of 64 MiB and a
	// quarter of the last minute's peak. Negative: none.
	RetainBytes int64
	// PreallocBytes are opened and registered by New.
	PreallocBytes int64
	// MaxRegionBytes is the largest single registration (a device's max_mr_size).
	// 0: no limit. Larger requests get ErrTooLarge. At least a block (4 MiB).
	MaxRegionBytes int64
	// Debug turns on checks.
	Debug Debug

	now         func() time.Time // tests: the clock; nil is time.Now
	forceShards bool             // tests: shards although the per-P caches are there
	noJanitor   bool             // tests: tick is called by hand
}

// check refuses settings that cannot work and fills in the defaults.
func (c *Config) check() error {
	if err := c.Access.Check(); err != nil {
		return fmt.Errorf("bemalloc: config: %w", err)
	}
	for _, v := range []struct {
		name    string
		n       int64
		atLeast int64
	}{
		{"MaxBytes", c.MaxBytes, MinBytes},
		{"ReserveBytes", c.ReserveBytes, blockSize},
		{"MaxRegionBytes", c.MaxRegionBytes, blockSize},
		{"PreallocBytes", c.PreallocBytes, 1},
		{"Debug.QuarantineBytes", c.Debug.QuarantineBytes, 1},
	} {
		if v.n != 0 && v.n < v.atLeast {
			return fmt.Errorf("bemalloc: config: %s is %d, want 0 or at least %d", v.name, v.n, v.atLeast)
		}
	}
	for i, r := range c.Also {
		if r == nil || c.Registrar == nil {
			return fmt.Errorf("bemalloc: config: Also[%d]: neither it nor Registrar may be nil", i)
		}
	}
	if c.HugePages > HugeTLB {
		return fmt.Errorf("bemalloc: config: unknown HugePages %d", c.HugePages)
	}
	if c.ReserveBytes == 0 {
		c.ReserveBytes = max(c.MaxBytes, reserveDefault)
		if c.MaxBytes > 0 && c.MaxBytes < reserveDefault/reserveFactor {
			c.ReserveBytes = c.MaxBytes * reserveFactor
		}
	}
	c.ReserveBytes = roundUp(min(c.ReserveBytes, maxReserve), blockSize)
	if c.PreallocBytes > c.ReserveBytes || c.MaxBytes > 0 && c.PreallocBytes > c.MaxBytes {
		return fmt.Errorf("bemalloc: config: PreallocBytes is %d, more than MaxBytes or ReserveBytes allow", c.PreallocBytes)
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c.Debug.fromEnv()
}
