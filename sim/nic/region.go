package nic

import (
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/verbs"
)

// PD is a protection domain: only its identity counts.
type PD struct{ _ byte }

// Region is a registered memory region of one NIC.
type Region struct {
	readers
	mr.Region
	buf    []byte
	access mr.Access
	pd     *PD
	bound  int // windows
}

// Bytes is the region's memory.
func (r *Region) Bytes() []byte { return r.buf }

// Idle reports, after DestroyRegion, that no packet in flight is being copied
// from the region: from then on its memory may be unmapped.
func (r *Region) Idle() bool { return r.idle() }

// slice gives the n bytes at addr. The bounds were checked.
func (r *Region) slice(addr, n uint64) []byte {
	off := addr - r.Addr
	return r.buf[off : off+n : off+n]
}

// Keys: slot in the table << tagBits | tag, scrambled with a mask of the NIC.
// A slot's tag starts anywhere and moves on with each region, so a key of a
// region that is gone is refused until the slot was used 2^tagBits times.
const (
	tagBits    = 12
	maxRegions = 1 << 18 // slots that MaxMR allows at most; 2 bits are spare
)

// rkeyFlip makes remote keys differ from local ones, so that a mix-up fails.
const rkeyFlip = 1 << 31

type keySlot struct {
	region *Region
	tag    uint32
}

// keyTable maps keys to regions.
type keyTable struct {
	slots []keySlot
	free  []uint32 // first in, first out
	mask  uint32   // scrambles keys; bit 31 is clear
	used  int
}

// add gives r a slot and its keys, or reports that the table holds limit regions.
func (t *keyTable) add(r *Region, limit int, random func() uint32) bool {
	if t.used >= limit {
		return false
	}
	var i uint32
	if len(t.free) > 0 {
		i = t.free[0]
		t.free = t.free[1:]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, keySlot{tag: random()})
	}
	s := &t.slots[i]
	s.region = r
	s.tag = (s.tag + 1) & (1<<tagBits - 1)
	key := (i<<tagBits | s.tag) ^ t.mask
	if key == 0 { // 0 is for "no key"
		s.tag = (s.tag + 1) & (1<<tagBits - 1)
		key = (i<<tagBits | s.tag) ^ t.mask
	}
	r.LKey, r.RKey, r.Handle = mr.LKey(key), mr.RKey(key^rkeyFlip), uint64(key)
	t.used++
	return true
}

// get finds the region of a local key, nil if there is none.
func (t *keyTable) get(k mr.LKey) *Region {
	v := uint32(k) ^ t.mask
	i := v >> tagBits
	if int64(i) >= int64(len(t.slots)) {
		return nil
	}
	if s := &t.slots[i]; s.region != nil && s.tag == v&(1<<tagBits-1) {
		return s.region
	}
	return nil
}

func (t *keyTable) remove(r *Region) {
	i := (uint32(r.LKey) ^ t.mask) >> tagBits
	t.slots[i].region = nil
	t.free = append(t.free, i)
	t.used--
}

// CreateRegion registers buf. Its length and access were checked by the caller
// (verbs.DeviceAttr.CheckMR).
func (n *NIC) CreateRegion(pd *PD, buf []byte, access mr.Access) (*Region, error) {
	r := &Region{Region: mr.Region{Addr: mr.Addr(buf), Length: uint64(len(buf))}, buf: buf, access: access, pd: pd}
	if !n.keys.add(r, min(n.cfg.Attr.MaxMR, maxRegions), n.cfg.Rand.Uint32) {
		return nil, verbs.ErrLimit
	}
	return r, nil
}

// Region finds a region by its local key, nil if there is none.
func (n *NIC) Region(k mr.LKey) *Region { return n.keys.get(k) }

// DestroyRegion ends a region: its keys are refused from now on. The memory may
// be unmapped once it is Idle.
func (n *NIC) DestroyRegion(r *Region) {
	n.keys.remove(r)
	r.revoke()
}

// local resolves a local segment. write: the NIC will write to it.
func (n *NIC) local(pd *PD, k mr.LKey, addr uint64, length uint32, write bool) (segment, bool) {
	r := n.keys.get(k)
	if r == nil || r.pd != pd || !r.Contains(addr, uint64(length)) || write && r.access&mr.LocalWrite == 0 {
		return segment{}, false
	}
	return segment{region: r, b: r.slice(addr, uint64(length))}, true
}

// SetAccess changes what may be done with a region.
func (r *Region) SetAccess(access mr.Access) { r.access = access }

// remote finds the region that q's peer names, by its own key or a window's; nil if
// it may not do that there.
func (n *NIC) remote(q *QP, k mr.RKey, addr, length uint64, need mr.Access) *Region {
	r := n.keys.get(mr.LKey(uint32(k) ^ rkeyFlip))
	if r == nil {
		return n.remoteWindow(q, k, addr, length, need)
	}
	if r.pd != q.pd || !r.Contains(addr, length) || r.access&need == 0 {
		return nil
	}
	return r
}
