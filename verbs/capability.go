package verbs

import (
	"fmt"
	"strings"
)

// DeviceFlags says what a device can do (enum ib_uverbs_device_cap_flags in
// rdma/ib_user_verbs.h). Those without a name here are kept as they are.
type DeviceFlags uint64

// The flags that matter to a reliable connection.
const (
	FlagRNRNakGen       DeviceFlags = 1 << 12
	FlagSRQResize       DeviceFlags = 1 << 13
	FlagMemWindow       DeviceFlags = 1 << 17
	FlagMemMgtExtension DeviceFlags = 1 << 21 // LOCAL_INV and SEND_WITH_INV
	FlagMemWindow2A     DeviceFlags = 1 << 23 // type 2, bound to a queue pair number
	FlagMemWindow2B     DeviceFlags = 1 << 24 // type 2, bound to a queue pair number and a domain
	FlagFlushGlobal     DeviceFlags = 1 << 38
	FlagFlushPersistent DeviceFlags = 1 << 39
	FlagAtomicWrite     DeviceFlags = 1 << 40
)

var flagNames = []struct {
	bit  DeviceFlags
	name string
}{
	{FlagRNRNakGen, "RC_RNR_NAK_GEN"}, {FlagSRQResize, "SRQ_RESIZE"}, {FlagMemWindow, "MEM_WINDOW"}, {FlagMemMgtExtension, "MEM_MGT_EXTENSIONS"},
	{FlagMemWindow2A, "MEM_WINDOW_TYPE_2A"}, {FlagMemWindow2B, "MEM_WINDOW_TYPE_2B"},
	{FlagFlushGlobal, "FLUSH_GLOBAL"}, {FlagFlushPersistent, "FLUSH_PERSISTENT"}, {FlagAtomicWrite, "ATOMIC_WRITE"},
}

// String lists the flags by their standard names, the others as a number.
func (f DeviceFlags) String() string {
	var parts []string
	for _, n := range flagNames {
		if f&n.bit != 0 {
			parts = append(parts, n.name)
			f &^= n.bit
		}
	}
	if f != 0 || parts == nil {
		parts = append(parts, fmt.Sprintf("%#x", uint64(f)))
	}
	return strings.Join(parts, "|")
}

// Windows reports whether memory windows of type 2 can be bound and invalidated.
func (f DeviceFlags) Windows() bool { return f&(FlagMemWindow2A|FlagMemWindow2B) != 0 }

// OnDemand is what a device can do with memory regions of mr.OnDemand, whose pages
// are brought in when they are used.
type OnDemand struct {
	Supported bool
	Implicit  bool        // a region of the whole address space
	RC        OnDemandOps // operations of a reliable connection that may touch such a region
}

// String lists the operations; "" without on-demand paging.
func (o OnDemand) String() string {
	var parts []string
	if o.Implicit {
		parts = append(parts, "implicit")
	}
	for i, name := range onDemandNames {
		if o.RC&(1<<i) != 0 {
			parts = append(parts, name)
		}
	}
	if !o.Supported {
		return ""
	}
	return strings.Join(parts, "|")
}

// onDemandNames are the operations by bit, as the kernel names them.
var onDemandNames = [...]string{"SEND", "RECV", "WRITE", "READ", "ATOMIC", "SRQ_RECV"}

// OnDemandOps is a set of operations (enum ib_uverbs_odp_transport_cap_bits in
// rdma/ib_user_verbs.h).
type OnDemandOps uint32

// The operations.
const (
	OnDemandSend    OnDemandOps = 1 << 0
	OnDemandRecv    OnDemandOps = 1 << 1
	OnDemandWrite   OnDemandOps = 1 << 2
	OnDemandRead    OnDemandOps = 1 << 3
	OnDemandAtomic  OnDemandOps = 1 << 4
	OnDemandSRQRecv OnDemandOps = 1 << 5
)
