package mlx5

import (
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// A window's key is bound and invalidated by a UMR (user-mode memory registration)
// request: it says which parts of the key's context to change, has a context with
// the new values of those, and, to bind, one KLM that names the range. Each of the
// three begins a block.

// maxBind is the longest range that a KLM can name.
const maxBind = 1 << 31

// Parts of a key's context that a window's requests change.
const (
	maskKey    = umrMaskFree | umrMaskMkey | umrMaskQPN
	maskWindow = maskKey | umrMaskLen | umrMaskStartAddr | umrMaskLocalWrite | umrMaskRemoteRead | umrMaskRemoteWrite | umrMaskAtomic
)

// anyQP is the queue pair of a key that is free.
const anyQP = 0xffffff

// putUMR writes the body of an invalidation or binding, and returns how many bytes
// it takes.
func (s *sendRing) putUMR(at int, w *qp.SendWR) int {
	u := s.b[at+ctrlSize : at+blockSize]
	clear(u)
	next := func() []byte {
		at = (at + blockSize) & (len(s.b) - 1)
		return s.b[at : at+blockSize]
	}
	k := next()
	if w.Opcode == qp.LocalInv {
		umrCtrlFlags.Put(u, umrInline|umrTranslationOffset|umrCheckQPN)
		umrCtrlMkeyMask.Put(u, maskKey)
		keyFree.Put(k, keyIsFree)
		keyQPNMkey.Put(k, anyQP<<8)
		return umrCtrlSize + keySize
	}
	b := w.Bind
	umrCtrlFlags.Put(u, umrInline|umrTranslationOffset|umrCheckFree)
	umrCtrlKLMOctowords.Put(u, blockSize/16) // a KLM and what fills its block
	umrCtrlMkeyMask.Put(u, maskWindow)
	keyFree.Put(k, 0)
	keyAccess.Put(k, keyAccessOf(b.Access))
	keyQPNMkey.Put(k, s.qpn<<8|uint32(b.RKey)&0xff)
	keyStartAddr.Put(k, b.Addr)
	keyLen.Put(k, b.Length)
	d := next()
	clear(d)
	klmByteCount.Put(d, uint32(b.Length))
	klmMkey.Put(d, uint32(b.Region))
	klmAddress.Put(d, b.Addr)
	return umrCtrlSize + keySize + blockSize
}

// keyAccessOf gives the bits of a key's context; local reading is the kernel's.
func keyAccessOf(a mr.Access) (f uint8) {
	for _, x := range [...]struct {
		access mr.Access
		bit    uint8
	}{{mr.RemoteWrite, keyRemoteWrite}, {mr.RemoteRead, keyRemoteRead}, {mr.RemoteAtomic, keyAtomic}} {
		if a&x.access != 0 {
			f |= x.bit
		}
	}
	return f
}
