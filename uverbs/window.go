//go:build linux

package uverbs

import (
	"fmt"

	"github.com/byteexpress/byteexpress/mr"
)

// AllocMW makes a memory window of type 2. It opens nothing until a queue pair
// binds it to a region.
func (c *Context) AllocMW(pd PDHandle) (MWHandle, mr.RKey, error) {
	r, err := c.begin(mAllocMW, allocMWSize+allocMWRespSize+8)
	if err != nil {
		return 0, 0, err
	}
	defer r.release()
	in := r.in(attrCoreIn, allocMWSize)
	allocMWPDHandle.Put(in, uint32(pd))
	allocMWType.Put(in, mwType2)
	out := r.out(attrCoreOut, allocMWRespSize)
	if errno := r.do(); errno != 0 {
		return 0, 0, c.fail(r.m, fmt.Sprintf("of type %d", mwType2), errno)
	}
	return MWHandle(allocMWRespMWHandle.Get(out)), mr.RKey(allocMWRespRkey.Get(out)), nil
}

// DeallocMW frees a memory window, bound or not: its remote key is refused from
// then on.
func (c *Context) DeallocMW(h MWHandle) error {
	return c.destroy(mMWDestroy, attrMWHandle, uint32(h))
}
