package uverbs

import "github.com/byteexpress/byteexpress/verbs"

// Details is what sysfs has about a device besides [Device]. Reading it needs no
// right to open the device. What is not told is zero.
type Details struct {
	Firmware      string // version
	Board         string // the vendor's id of the board (PSID)
	Type          string // the vendor's name of the chip, as "MT4123"
	Description   string // node description, which the administrator may have set
	PCI           string // address, as "0000:17:00.0"; empty for software devices
	NUMANode      int    // -1: none, or not told
	LocalCPUs     string // list of the CPUs next to it, as "0-15,32-47"
	Module        string // kernel module of the driver
	ModuleVersion string // of drivers from outside the kernel
	Ports         []PortDetails
}

// PortDetails is what sysfs has about a port.
type PortDetails struct {
	Port      int
	State     verbs.PortState
	Physical  string // physical state, as "LinkUp"
	LinkLayer verbs.LinkLayer
	LID       uint16
	SMLID     uint16
	SpeedGbps float64 // of all lanes
	Rate      string  // the same in the kernel's words, as "100 Gb/sec (4X EDR)"
	PKeys     []uint16
	Counters  map[string]uint64 // of the port, and of the driver
}

// SeenGID is an entry of a GID table as sysfs has it, whether it can be used or not.
type SeenGID struct {
	verbs.GIDEntry
	Hidden string // why it cannot be used from this network namespace; empty: it can
}

// Node is a device node of the RDMA subsystem.
type Node struct {
	Path         string
	Major, Minor uint32
	ABI          int
}
