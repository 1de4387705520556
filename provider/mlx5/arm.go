package mlx5

import "encoding/binary"

// armer asks the NIC for an event of a completion queue.
type armer struct {
	page *uarPage
	cqn  uint32
	sn   uint32 // completion events received
}

// arm asks for one event when there is an entry after the consumed ones: of any
// kind, or a solicited or failed one. The record comes before the register.
func (a *armer) arm(record []byte, next uint32, solicitedOnly bool) {
	v := a.sn&3<<28 | next&numberMask
	if solicitedOnly {
		v |= armSolicited
	}
	binary.BigEndian.PutUint32(record[4*recordArm:], v)
	a.page.arm(uint64(v)<<32 | uint64(a.cqn))
}
