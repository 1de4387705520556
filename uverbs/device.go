package uverbs

import "fmt"

// Device is an RDMA device that the kernel has, opened or not.
type Device struct {
	Name     string // "rxe0"
	Index    uint32 // the kernel's number of it; 0 also when netlink does not tell
	Node     string // "uverbs0"; empty if the kernel made none
	Path     string // of the device node
	Major    uint32 // device number of the node
	Minor    uint32
	Driver   DriverID // DriverUnknown if nothing told
	Kernel   string   // name of the kernel's driver for people: "rxe", "mlx5_core"
	ABI      int      // version of the driver's own ABI
	NodeType int      // 1 CA, 4 RNIC (iWARP), ... (enum rdma_node_type)
	NodeGUID uint64
	Ports    int    // ports are numbered from 1
	NetDev   string // software devices: the network interface below
	Modalias string // PCI devices: vendor and device id as sysfs has them
	Err      error  // not nil: it cannot be opened, and why
}

var driverNames = map[DriverID]string{
	DriverMLX5: "mlx5", DriverMLX4: "mlx4", DriverCXGB4: "cxgb4", DriverBNXTRE: "bnxt_re", DriverIRDMA: "irdma", DriverPVRDMA: "pvrdma",
	DriverQEDR: "qedr", DriverHNS: "hns", DriverRXE: "rxe", DriverHFI1: "hfi1", DriverEFA: "efa", DriverSIW: "siw",
	DriverERDMA: "erdma", DriverMANA: "mana", DriverIONIC: "ionic",
}

// String is the driver's short name, as "rxe".
func (d DriverID) String() string {
	if s, ok := driverNames[d]; ok {
		return s
	}
	return fmt.Sprintf("driver %d", uint32(d))
}

// Handles name a context's objects in requests. They are the kernel's numbers.
type (
	PDHandle  uint32
	MRHandle  uint32
	MWHandle  uint32
	CQHandle  uint32
	QPHandle  uint32
	SRQHandle uint32

	MLX5UARHandle uint32
)
