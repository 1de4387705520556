package mr

import (
	"fmt"
	"strings"
)

// Access says who may do what with a memory region. The values are those of
// enum ib_uverbs_access_flags in rdma/ib_user_ioctl_verbs.h.
type Access uint32

// The access flags. Without any of them a region can be read by this host's NIC:
// enough for the source of SENDs and WRITEs.
const (
	// LocalWrite lets this host's NIC write to the region: needed for receive
	// buffers, READ targets and atomic results.
	LocalWrite Access = 1 << 0
	// RemoteWrite lets a peer WRITE to the region. It requires LocalWrite.
	RemoteWrite Access = 1 << 1
	// RemoteRead lets a peer READ the region.
	RemoteRead Access = 1 << 2
	// RemoteAtomic lets a peer run atomics on the region. It requires LocalWrite.
	RemoteAtomic Access = 1 << 3
	// WindowBind lets memory windows be bound to the region. It requires LocalWrite
	// when a window is to grant RemoteWrite or RemoteAtomic.
	WindowBind Access = 1 << 4
	// OnDemand asks for on-demand paging instead of pinned pages.
	OnDemand Access = 1 << 6
	// HugeTLB hints that the region is backed by huge pages.
	HugeTLB Access = 1 << 7
	// RelaxedOrdering lets the NIC's writes reach memory out of order. A
	// completion still orders them; polling the memory itself does not. It lies
	// in the optional range: a kernel may ignore it.
	RelaxedOrdering Access = 1 << 20
)

// OptionalRange masks the access bits that a kernel may ignore
// (IB_UVERBS_ACCESS_OPTIONAL_RANGE). Kernels before 5.6 refuse them, so they
// are cleared unless the kernel announced that it tolerates them.
const OptionalRange Access = 0x3ff00000

var accessNames = []struct {
	bit  Access
	name string
}{
	{LocalWrite, "local-write"},
	{RemoteWrite, "remote-write"},
	{RemoteRead, "remote-read"},
	{RemoteAtomic, "remote-atomic"},
	{WindowBind, "window-bind"},
	{OnDemand, "on-demand"},
	{HugeTLB, "huge-tlb"},
	{RelaxedOrdering, "relaxed-ordering"},
}

// String lists the flags, as "local-write|remote-write"; no flag is
// "local-read", which every region allows.
func (a Access) String() string {
	if a == 0 {
		return "local-read"
	}
	var parts []string
	for _, n := range accessNames {
		if a&n.bit != 0 {
			parts = append(parts, n.name)
			a &^= n.bit
		}
	}
	if a != 0 {
		parts = append(parts, fmt.Sprintf("%#x", uint32(a)))
	}
	return strings.Join(parts, "|")
}

// Check refuses combinations that no device accepts (IBTA 1.4, 10.6.3.1; the
// kernel's ib_check_mr_access).
func (a Access) Check() error {
	if a&(RemoteWrite|RemoteAtomic) != 0 && a&LocalWrite == 0 {
		return fmt.Errorf("%w: %v needs local-write too", ErrAccess, a)
	}
	return nil
}
