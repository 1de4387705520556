package verbs

import (
	"context"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// DeviceInfo names a device and its driver.
type DeviceInfo struct {
	Name     string // "rxe0", "mlx5_0", "sim:"
	Provider string // the package that drives it: "rxe", "mlx5", "sim"
	Ports    int    // physical ports, numbered from 1
	NodeGUID uint64
}

// Device is an RDMA device that has not been opened yet.
type Device interface {
	// Info names the device, without asking it.
	Info() DeviceInfo
	// Open gives a context of its own: objects of different contexts do not mix.
	Open() (Context, error)
}

// Context is an opened device. Its methods may be called from any goroutine.
type Context interface {
	// Info names the device, without asking it.
	Info() DeviceInfo
	// Attr asks for the device's limits.
	Attr() (DeviceAttr, error)
	// Port asks for a port's state; ports count from 1.
	Port(port int) (PortAttr, error)
	// GIDs lists the port's GIDs that are not empty and can be used from this
	// network namespace, by ascending index.
	GIDs(port int) ([]GIDEntry, error)
	// AllocPD makes a protection domain.
	AllocPD() (PD, error)
	// CreateCQ makes a completion queue.
	CreateCQ(CQConfig) (cq.CQ, error)
	// NextEvent blocks for the next asynchronous event of the device. It returns
	// ctx's error, ErrClosed, or ErrDeviceLost after the last event.
	NextEvent(ctx context.Context) (Event, error)
	// Close gives the device back. It fails while objects of it exist, and with
	// ErrClosed the second time.
	Close() error
}

// PD is a protection domain: queue pairs reach only the memory regions of their
// own domain. Its methods may be called from any goroutine.
type PD interface {
	mr.Registrar
	// CreateQP makes a reliable-connection queue pair in state RESET.
	CreateQP(QPConfig) (qp.QP, error)
	// CreateSRQ makes a shared receive queue for queue pairs of this domain.
	CreateSRQ(SRQConfig) (qp.SRQ, error)
	// Close gives the domain back. It fails while regions, queue pairs or shared
	// receive queues exist, and with ErrClosed the second time.
	Close() error
}

// CQConfig asks for a completion queue.
type CQConfig struct {
	Entries int // completions it must be able to hold, at least 1
	Vector  int // completion vector (interrupt), 0 up to DeviceAttr.CompVectors-1
}

// QPConfig asks for a queue pair. Both queues belong to the PD's context and may
// be the same.
type QPConfig struct {
	SendCQ cq.CQ
	RecvCQ cq.CQ
	Caps   qp.Caps
	SigAll bool // every send request is signaled
	// SRQ, of the same PD, gives the receives; the queue pair then has no receive
	// queue, and Caps.RecvWR and RecvSGE do not count. Nil: a queue of its own.
	SRQ qp.SRQ
	// OwnDoorbell asks for a doorbell register that no other queue pair writes (a
	// thread domain), so that posting never waits for another goroutine. A device
	// without such registers (DeviceAttr.OwnDoorbells) refuses it with an
	// [UnsupportedError], one that has given all away with [ErrLimit]. Without it
	// the queue pair has one too while there are some.
	OwnDoorbell bool
}

// SRQConfig asks for a shared receive queue.
type SRQConfig struct {
	Caps qp.SRQCaps
}

// DeviceAttr holds a device's limits.
type DeviceAttr struct {
	FirmwareVersion string
	VendorID        uint32
	VendorPartID    uint32
	HWVersion       uint32
	MaxQP           int
	MaxQPWR         int // requests a queue
	MaxSGE          int // segments a request
	MaxInline       int // bytes of inline payload; 0: not told by the device
	MaxCQ           int
	MaxCQE          int // completions a queue
	MaxMR           int
	MaxMRSize       uint64 // bytes a region
	MaxPD           int
	MaxSRQ          int  // 0: no shared receive queues
	MaxSRQWR        int  // requests a shared receive queue
	MaxSRQSGE       int  // segments a request of it
	MaxReads        int  // READs and atomics a queue pair may have outstanding
	MaxDestReads    int  // and may serve at a time
	Atomics         bool // compare-and-swap and fetch-and-add work
	CompVectors     int
	PageSizes       uint64 // bit n: pages of 2^n bytes

	Flags         DeviceFlags
	AtomicsGlobal bool          // atomics are atomic against other devices and CPUs too
	MaxMW         int           // memory windows
	SystemGUID    uint64        // the same on all devices of one NIC
	MaxPKeys      int           // a port
	AckDelay      qp.AckTimeout // local CA ack delay: what the device adds to the peer's timeout
	OnDemand      OnDemand
	OwnDoorbells  bool   // queue pairs can have a doorbell register each
	TimestampMask uint64 // valid bits of a completion's hardware timestamp; 0: none
	ClockKHz      uint64 // rate of that clock
}
