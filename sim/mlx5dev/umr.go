package mlx5dev

import (
	"encoding/binary"
	"fmt"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// Parts of a UMR request (as in rdma-core's providers/mlx5/mlx5dv.h): after the
// control segment 48 bytes that say what to change, 64 bytes of a key's context, and
// for a binding one KLM in 64 bytes.
const (
	umrBase       = 0x90 // flags: inline, translation offset
	umrBindCheck  = 0x20 // the key must be free
	umrInvCheck   = 0x08 // and must be this queue pair's
	umrKeyMask    = 1<<29 | 1<<14 | 1<<13
	umrBindMask   = umrKeyMask | 1<<21 | 1<<20 | 1<<19 | 1<<18 | 1<<6 | 1
	umrKey        = 64  // offset of the key's context
	umrKLM        = 128 // offset of the KLM
	keyFree       = 0x40
	umrInvUnits   = 8
	umrBindUnits  = 12
	longestWindow = 1 << 31
)

// windowAccess are the access bits of a key's context.
var windowAccess = []struct {
	bit    uint8
	access mr.Access
}{{0x10, mr.RemoteRead}, {0x20, mr.RemoteWrite}, {0x40, mr.RemoteAtomic}}

// umr reads a request that binds or invalidates a window's key.
func (d *decoder) umr(r *request) error {
	b := d.raw
	if n := len(b) / segment; n != umrInvUnits && n != umrBindUnits {
		return fmt.Errorf("UMR of %d units, must be %d to invalidate or %d to bind", n, umrInvUnits, umrBindUnits)
	}
	bind := len(b)/segment == umrBindUnits
	flags, mask, klms, qpn := uint8(umrBase|umrInvCheck), uint64(umrKeyMask), uint16(0), uint32(0xffffff)
	if bind {
		flags, mask, klms, qpn = umrBase|umrBindCheck, umrBindMask, 4, d.qpn
	}
	u, k := b[segment:umrKey], b[umrKey:umrKLM]
	key := binary.BigEndian.Uint32(k[4:])
	switch {
	case u[0] != flags:
		return fmt.Errorf("UMR flags are %#x, must be %#x", u[0], flags)
	case u[1] != 0 || u[2] != 0 || u[3] != 0 || u[6] != 0 || u[7] != 0 || !zero(u[16:]):
		return fmt.Errorf("reserved bytes or translation offset of a UMR are not 0")
	case binary.BigEndian.Uint16(u[4:]) != klms:
		return fmt.Errorf("UMR has %d units of KLM, must be %d", binary.BigEndian.Uint16(u[4:]), klms)
	case binary.BigEndian.Uint64(u[8:]) != mask:
		return fmt.Errorf("UMR changes the parts %#x of the key, must be %#x", binary.BigEndian.Uint64(u[8:]), mask)
	case key>>8 != qpn:
		return fmt.Errorf("key is of queue pair %#x, must be %#x", key>>8, qpn)
	case !bind && (k[0] != keyFree || key&0xff != 0):
		return fmt.Errorf("key of an invalidation is not free, or has low byte %#x", key&0xff)
	case bind && k[0] != 0:
		return fmt.Errorf("key of a binding has state %#x", k[0])
	}
	if !bind {
		r.wr.Opcode = qp.LocalInv
		return nil
	}
	m := b[umrKLM:]
	w := &d.bind
	*w = qp.Bind{Region: mr.LKey(binary.BigEndian.Uint32(m[4:])), Addr: binary.BigEndian.Uint64(k[16:]), Length: binary.BigEndian.Uint64(k[24:]),
		RKey: r.wr.RKey&^0xff | mr.RKey(key&0xff)}
	rest := k[2]
	for _, a := range windowAccess {
		if rest&a.bit != 0 {
			w.Access |= a.access
			rest &^= a.bit
		}
	}
	switch {
	case rest != 0:
		return fmt.Errorf("access flags of the key have unknown bits %#x", rest)
	case w.Length == 0 || w.Length > longestWindow || uint64(binary.BigEndian.Uint32(m)) != w.Length || binary.BigEndian.Uint64(m[8:]) != w.Addr:
		return fmt.Errorf("key's range of %d bytes at %#x and KLM's of %d at %#x differ, or are too long", w.Length, w.Addr, binary.BigEndian.Uint32(m), binary.BigEndian.Uint64(m[8:]))
	case !zero(m[16:]):
		return fmt.Errorf("bytes after the KLM are not 0")
	}
	r.wr.Opcode, r.wr.Bind = qp.BindMW, w
	return nil
}

func zero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
