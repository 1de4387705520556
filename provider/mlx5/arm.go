package mlx5

// armer asks the NIC for an event of a completion queue.
type armer struct {
	page *uarPage
	cqn  uint32
	sn   uint32 // completion events received
}

// arm asks for one event when there is an entry after the consumed ones: of any
// kind, or a solicited or failed one. The record's word comes before the register.
func (a *armer) arm(record *uint32, next uint32, solicitedOnly bool) {
	v := a.sn&3<<28 | next&numberMask
	if solicitedOnly {
		v |= armSolicited
	}
	a.page.arm(record, v, uint64(v)<<32|uint64(a.cqn))
}
