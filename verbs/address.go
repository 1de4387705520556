package verbs

import "fmt"

// Address is how packets reach a port.
type Address struct {
	Link LinkLayer
	LID  uint16 // on InfiniBand, 0 if no subnet manager gave one
	GID  GID
}

// Global says whether packets from one port to another carry a global route header,
// that is whether an address vector names the peer's GID: always on Ethernet (RoCE),
// never inside an InfiniBand subnet. The error says why the two cannot talk: an end
// without an address, or InfiniBand subnets that differ, for the LID of the router
// between them is known to the connection manager only (IBTA 1.4, 4.1.1 and 19.2.4).
func (a Address) Global(peer Address) (bool, error) {
	switch {
	case a.Link != peer.Link:
		return false, fmt.Errorf("link layers differ: ours is %v, the peer's %v", a.Link, peer.Link)
	case a.Link != LinkInfiniBand && (a.GID.IsZero() || peer.GID.IsZero()):
		return true, fmt.Errorf("RoCE without a GID: ours is %v, the peer's %v: give the network interface an address", a.GID, peer.GID)
	case a.Link != LinkInfiniBand:
		return true, nil
	case a.LID == 0 || peer.LID == 0:
		return false, fmt.Errorf("InfiniBand without a LID: ours is %d, the peer's %d: does a subnet manager run?", a.LID, peer.LID)
	case !a.GID.IsZero() && !peer.GID.IsZero() && [8]byte(a.GID[:8]) != [8]byte(peer.GID[:8]):
		return true, fmt.Errorf("InfiniBand subnets differ: ours is %x, the peer's %x: connect by rdma_cm, which knows the router", a.GID[:8], peer.GID[:8])
	}
	return false, nil
}
