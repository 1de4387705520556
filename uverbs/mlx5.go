//go:build linux

package uverbs

import "fmt"

// MLX5UAR is a page of doorbell registers that the mlx5 driver gave: an object of
// its own kind.
type MLX5UAR struct {
	Handle MLX5UARHandle
	Offset int64  // for mapping it from the context's descriptor
	Length int    // bytes of the mapping
	PageID uint32 // names it when queues are created
}

// AllocMLX5UAR asks the mlx5 driver for a page of doorbell registers: with
// BlueFlame (write-combining), or not cached.
func (c *Context) AllocMLX5UAR(blueFlame bool) (u MLX5UAR, err error) {
	r, err := c.begin(mMLX5UARAlloc, 3*8)
	if err != nil {
		return u, err
	}
	defer r.release()
	handle := r.result(attrMLX5UARHandle, kindNewHandle)
	kind := uint64(mlx5UARNonCached)
	if blueFlame {
		kind = mlx5UARBlueFlame
	}
	r.constant(attrMLX5UARType, kind)
	offset := r.out(attrMLX5UARMmapOffset, 8)
	length := r.out(attrMLX5UARMmapLength, 4)
	page := r.out(attrMLX5UARPageID, 4)
	if errno := r.do(); errno != 0 {
		return u, c.fail(r.m, fmt.Sprintf("of type %d", kind), errno)
	}
	return MLX5UAR{Handle: MLX5UARHandle(attrData.Get(handle)), Offset: int64(u64(offset)), Length: int(u32(length)), PageID: u32(page)}, nil
}

// DestroyMLX5UAR gives the page back. It must be unmapped before.
func (c *Context) DestroyMLX5UAR(h MLX5UARHandle) error {
	return c.destroy(mMLX5UARDestroy, attrMLX5UARDestroyHandle, uint32(h))
}
