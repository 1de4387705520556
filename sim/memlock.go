package sim

import (
	"fmt"
	"syscall"
)

const (
	page    = 4096
	cqeSize = 64 // bytes, as on common NICs
)

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

// cqBytes is the memory of a completion queue.
func cqBytes(entries int) uint64 { return roundUp(uint64(entries)*cqeSize, page) }

// lock takes bytes from the device's limit on locked memory.
func (d *Device) lock(bytes uint64, op, object string) error {
	limit := d.memlock.Load()
	d.mu.Lock()
	defer d.mu.Unlock()
	if limit > 0 && (bytes > limit || d.locked > limit-bytes) {
		cause := fmt.Errorf("%w: locked memory is limited to %d bytes, %d are in use, %d more are needed", syscall.ENOMEM, limit, d.locked, bytes)
		return d.err(op, object, cause, "raise the limit with ulimit -l (containers: --ulimit memlock), or give the process CAP_IPC_LOCK")
	}
	d.locked += bytes
	return nil
}

func (d *Device) unlock(bytes uint64) {
	d.mu.Lock()
	d.locked -= bytes
	d.mu.Unlock()
}

// Locked is how many bytes of registered memory and completion queues there are.
func (d *Device) Locked() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.locked
}

// SetMemlock changes the limit on locked memory; 0: no limit.
func (d *Device) SetMemlock(bytes uint64) { d.memlock.Store(bytes) }

// count takes one of a kind of object, or reports that limit are there.
func (d *Device) count(n *int, limit int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if *n >= limit {
		return false
	}
	*n++
	return true
}
