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

// PhysState is what a port's link is doing (IBTA 1.4, 14.2.5.6, PortPhysicalState).
type PhysState uint8

// The physical states.
const (
	PhysSleep    PhysState = 1
	PhysPolling  PhysState = 2
	PhysDisabled PhysState = 3
	PhysTraining PhysState = 4
	PhysLinkUp   PhysState = 5
	PhysRecovery PhysState = 6
	PhysTest     PhysState = 7
)

var physStates = [...]string{"", "SLEEP", "POLLING", "DISABLED", "TRAINING", "LINK_UP", "LINK_ERROR_RECOVERY", "PHY_TEST"}

// String is the state's standard name.
func (s PhysState) String() string {
	if s > 0 && int(s) < len(physStates) {
		return physStates[s]
	}
	return fmt.Sprintf("PHYS_STATE_%d", uint8(s))
}

// Speed is the signalling rate of one lane (enum ib_port_speed in the kernel's
// rdma/ib_verbs.h).
type Speed uint32

// The lane speeds, by their InfiniBand names; Ethernet ports report the nearest.
const (
	SDR   Speed = 1
	DDR   Speed = 2
	QDR   Speed = 4
	FDR10 Speed = 8
	FDR   Speed = 16
	EDR   Speed = 32
	HDR   Speed = 64
	NDR   Speed = 128
	XDR   Speed = 256 // told by kernels after 6.1
)

var speeds = map[Speed]struct {
	name string
	gbps float64
}{
	SDR: {"SDR", 2.5}, DDR: {"DDR", 5}, QDR: {"QDR", 10}, FDR10: {"FDR10", 10}, FDR: {"FDR", 14}, EDR: {"EDR", 25},
	HDR: {"HDR", 50}, NDR: {"NDR", 100}, XDR: {"XDR", 200},
}

// String is the speed's standard name.
func (s Speed) String() string {
	if v, ok := speeds[s]; ok {
		return v.name
	}
	return fmt.Sprintf("SPEED_%d", uint32(s))
}

// Gbps is the rate of a lane in Gbit/s as it is marketed; 0: not known.
func (s Speed) Gbps() float64 { return speeds[s].gbps }

// PortAttr is the state of a port.
type PortAttr struct {
	State      PortState
	PhysState  PhysState
	LinkLayer  LinkLayer
	MaxMTU     qp.MTU
	ActiveMTU  qp.MTU
	LID        uint16 // InfiniBand: the port's local identifier
	LMC        uint8  // of whose low bits so many are for paths
	SMLID      uint16 // InfiniBand: where the subnet manager is
	SMSL       uint8  // and the service level to reach it
	MaxMessage uint32 // bytes a message
	GIDs       int    // length of the GID table, empty entries included
	PKeys      int
	Width      int     // lanes
	Speed      Speed   // of a lane; 0: not told
	SpeedGbps  float64 // of all lanes; 0: not known
}
