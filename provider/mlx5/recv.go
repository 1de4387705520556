package mlx5

import "github.com/byteexpress/byteexpress/qp"

// putRecv writes a receive into its slot: the segments that are not empty and, if
// the slot has room for more, one that ends the list.
func putRecv(slot []byte, w *qp.RecvWR) {
	for i := range w.SGEs {
		g := &w.SGEs[i]
		if g.Length == 0 {
			continue
		}
		dataByteCount.Put(slot, g.Length)
		dataLKey.Put(slot, uint32(g.LKey))
		dataAddr.Put(slot, g.Addr)
		slot = slot[dataSize:]
	}
	if len(slot) > 0 {
		dataByteCount.Put(slot, 0)
		dataLKey.Put(slot, dataInvalidLKey)
		dataAddr.Put(slot, 0)
	}
}
