package verbs

import (
	"fmt"

	"github.com/byteexpress/byteexpress/qp"
)

// PortState is a port's logical state (enum ib_port_state).
type PortState uint8

// The port states. Only an ACTIVE port (or one that defers a failover) carries
// packets.
const (
	PortDown        PortState = 1
	PortInit        PortState = 2
	PortArmed       PortState = 3
	PortActive      PortState = 4
	PortActiveDefer PortState = 5
)

// String is the state's standard name.
func (s PortState) String() string {
	switch s {
	case PortDown:
		return "DOWN"
	case PortInit:
		return "INIT"
	case PortArmed:
		return "ARMED"
	case PortActive:
		return "ACTIVE"
	case PortActiveDefer:
		return "ACTIVE_DEFER"
	}
	return fmt.Sprintf("STATE_%d", uint8(s))
}

// LinkLayer is what a port speaks below the transport.
type LinkLayer uint8

// The link layers; on Ethernet the transport is RoCE, or iWARP.
const (
	LinkUnspecified LinkLayer = 0
	LinkInfiniBand  LinkLayer = 1
	LinkEthernet    LinkLayer = 2
)

// String is the link layer's name as in sysfs.
func (l LinkLayer) String() string {
	switch l {
	case LinkInfiniBand:
		return "InfiniBand"
	case LinkEthernet:
		return "Ethernet"
	}
	return "unspecified"
}

// PortAttr is the state of a port.
type PortAttr struct {
	State      PortState
	LinkLayer  LinkLayer
	MaxMTU     qp.MTU
	ActiveMTU  qp.MTU
	LID        uint16
	MaxMessage uint32 // bytes a message
	GIDs       int    // length of the GID table, empty entries included
	PKeys      int
	Width      int     // lanes
	SpeedGbps  float64 // of all lanes; 0: not known
}
