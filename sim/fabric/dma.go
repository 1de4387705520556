package fabric

import "github.com/byteexpress/byteexpress/sim/des"

// rxBuffer is what a NIC can hold of what it has not written to memory yet. It
// pauses its link above three quarters of it, until it is below half. (Assumed.)
const rxBuffer = 1 << 20

// dma is the way from a NIC to its host's memory, if that is slower than the wire.
type dma struct {
	pace pace // 0: as fast as the wire
	wait fifo
}

// SetDMA makes the way from the NIC to the host's memory as slow as that many Gb/s
// of frames; 0, or the link's rate, is no limit. The NIC then holds what waits,
// and pauses its link when it has too much.
func (h *Host) SetDMA(gbps int) {
	if gbps <= 0 || gbps >= h.port.cfg.Gbps {
		h.dma.pace = 0
		return
	}
	h.dma.pace = paceOf(gbps)
}

// buffer has a frame wait for memory.
func (h *Host) buffer(fr *frame) {
	w := &h.dma.wait
	if w.bytes+int(fr.size) > rxBuffer { // there was no pause, or nobody obeyed it
		h.f.delivered--
		h.f.dropped++
		h.port.stats.Drops++
		h.f.trace(h.port, "drop", fr)
		h.f.recycle(fr)
		return
	}
	if w.head == nil {
		h.f.k.At(h.f.k.Now()+h.dma.pace.of(int(fr.size)), h.f.dmaKind, int32(h.id), 0)
	}
	w.push(fr)
	if w.bytes > rxBuffer/4*3 && h.f.cfg.Switch.PFC && !h.port.xoff {
		h.port.sendPause(true)
	}
}

// drained is a frame that is in memory.
func (h *Host) drained() {
	w := &h.dma.wait
	fr := w.pop()
	if w.head != nil {
		h.f.k.At(h.f.k.Now()+h.dma.pace.of(int(w.head.size)), h.f.dmaKind, int32(h.id), 0)
	}
	if w.bytes < rxBuffer/2 && h.port.xoff && !h.stuck {
		h.port.sendPause(false)
	}
	h.process(fr)
}

// StickPause has the host's NIC pause its link for a time, as a broken one does.
func (h *Host) StickPause(d des.Time) {
	h.stuck = true
	h.port.sendPause(true)
	h.f.k.At(h.f.k.Now()+d, h.f.unstickKind, int32(h.id), 0)
}

func (h *Host) unstick() {
	h.stuck = false
	if h.dma.wait.bytes < rxBuffer/2 {
		h.port.sendPause(false)
	}
}
