package sim

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/nic"
	"github.com/byteexpress/byteexpress/verbs"
)

// Port is a port of a device's configuration.
type Port = nic.Port

// GID is an entry of a port's GID table.
type GID = nic.GID

// Stats counts what a NIC did.
type Stats = nic.Stats

// DeviceConfig is what a NIC is made of. The zero value takes every default. It is
// not changed after NewDevice.
type DeviceConfig struct {
	// Ports of the NIC. None: one active 100 Gb/s Ethernet port with an active MTU
	// of 4096 and two RoCE v2 GIDs, link-local at index 0 and IPv4-mapped at 1. In a
	// given port, zero fields take these defaults, one by one; without GIDs it has
	// those two.
	Ports []Port
	// Limits of the NIC; zero fields take the default (DefaultAttr).
	Limits verbs.DeviceAttr
	// Memlock bounds the bytes of registered memory and completion queues, as
	// RLIMIT_MEMLOCK does; 0: no bound.
	Memlock uint64
	// PageSize, if not 0, refuses to register memory whose start or length is not a
	// multiple of it, as for memory of huge pages.
	PageSize uint64
	// HoldSends lets receive completions overtake up to that many send completions
	// of the same CQ; 0: in order.
	HoldSends int
}

// Defaults of a simulated NIC.
const (
	defaultMTU   = qp.MTU4096
	defaultSpeed = 100 // Gb/s
	// vendorID is of the range that no vendor was given (locally administered).
	vendorID = 0x020000
)

// DefaultAttr gives the limits of a NIC whose configuration names none.
func DefaultAttr() verbs.DeviceAttr {
	return verbs.DeviceAttr{
		FirmwareVersion: "sim", VendorID: vendorID, MaxQP: 65536, MaxQPWR: 16384, MaxSGE: 32, MaxInline: 512, MaxCQ: 65536, MaxCQE: 1 << 20,
		MaxMR: 1 << 16, MaxMRSize: 1 << 40, MaxPD: 65536,
		MaxSRQ: 65536, MaxSRQWR: 16384, MaxSRQSGE: 32, MaxReads: 128, MaxDestReads: 128, Atomics: true, CompVectors: 64,
		PageSizes: 1<<12 | 1<<21 | 1<<30, MaxMW: 1 << 16,
		Flags: verbs.FlagMemWindow | verbs.FlagMemWindow2B | verbs.FlagMemMgtExtension | verbs.FlagRNRNakGen,
	}
}

// Device is a simulated NIC: a verbs.Device, and the control of its faults. Its
// methods may be called from any goroutine.
type Device struct {
	fabric *Fabric
	info   verbs.DeviceInfo
	cfg    DeviceConfig
	attr   verbs.DeviceAttr
	node   *node
	single bool // leaves the fabric with its last context

	lost    atomic.Bool
	refuse  atomic.Int64  // registrations to refuse; negative: all
	memlock atomic.Uint64 // limit
	gone    chan struct{} // closed when lost

	gidMu sync.Mutex // one change of addresses at a time

	mu       sync.Mutex
	contexts []*Context
	locked   uint64 // bytes
	pds      int
	cqs      int
	srqs     int
	shared   []*SRQ // those that are open
}

func newDevice(f *Fabric, name string, number uint32, cfg DeviceConfig) (*Device, error) {
	d := &Device{fabric: f, cfg: cfg, attr: limits(cfg.Limits), gone: make(chan struct{})}
	if number >= 1<<24-1 {
		return nil, errors.New("too many devices on the fabric")
	}
	ports := slices.Clone(cfg.Ports)
	if len(ports) == 0 {
		ports = make([]nic.Port, 1)
	}
	for i := range ports {
		fillPort(&ports[i], number, i+1)
	}
	d.info = verbs.DeviceInfo{Name: name, Provider: "sim", Ports: len(ports), NodeGUID: guid(number, 0)}
	d.memlock.Store(cfg.Memlock)
	n := &node{fabric: f, dev: d}
	n.nic = nic.New(nic.Config{
		Attr: d.attr, Ports: ports, Segment: f.cfg.Segment, HoldSends: cfg.HoldSends, Rand: f.random(uint64(number)), Event: d.event,
	}, direct{f})
	n.nic.Owner = n
	d.node = n
	return d, nil
}

// limits fills zero fields with the defaults.
func limits(a verbs.DeviceAttr) verbs.DeviceAttr {
	d := DefaultAttr()
	for _, p := range []struct{ have, def *int }{
		{&a.MaxQP, &d.MaxQP}, {&a.MaxQPWR, &d.MaxQPWR}, {&a.MaxSGE, &d.MaxSGE}, {&a.MaxInline, &d.MaxInline}, {&a.MaxCQ, &d.MaxCQ},
		{&a.MaxCQE, &d.MaxCQE}, {&a.MaxMR, &d.MaxMR}, {&a.MaxPD, &d.MaxPD}, {&a.MaxReads, &d.MaxReads}, {&a.MaxDestReads, &d.MaxDestReads},
		{&a.CompVectors, &d.CompVectors}, {&a.MaxSRQ, &d.MaxSRQ}, {&a.MaxSRQWR, &d.MaxSRQWR}, {&a.MaxSRQSGE, &d.MaxSRQSGE},
	} {
		if *p.have == 0 {
			*p.have = *p.def
		}
	}
	a.FirmwareVersion = cmp.Or(a.FirmwareVersion, d.FirmwareVersion)
	a.VendorID = cmp.Or(a.VendorID, d.VendorID)
	a.MaxMRSize = cmp.Or(a.MaxMRSize, d.MaxMRSize)
	a.PageSizes = cmp.Or(a.PageSizes, d.PageSizes)
	a.MaxMW = cmp.Or(a.MaxMW, d.MaxMW)
	a.Flags = cmp.Or(a.Flags, d.Flags)
	a.Atomics = true
	return a
}

func fillPort(p *nic.Port, number uint32, port int) {
	p.State = cmp.Or(p.State, verbs.PortActive)
	p.LinkLayer = cmp.Or(p.LinkLayer, verbs.LinkEthernet)
	p.MaxMTU = cmp.Or(p.MaxMTU, qp.MTU4096)
	p.ActiveMTU = cmp.Or(p.ActiveMTU, defaultMTU)
	p.MaxMessage = cmp.Or(p.MaxMessage, uint32(qp.MaxMessage))
	p.PKeys = cmp.Or(p.PKeys, 1)
	p.Width = cmp.Or(p.Width, 4)
	p.SpeedGbps = cmp.Or(p.SpeedGbps, defaultSpeed)
	p.PhysState = cmp.Or(p.PhysState, verbs.PhysLinkUp)
	if p.GIDs == nil {
		for i, g := range DefaultGIDs(number, port) {
			p.GIDs = append(p.GIDs, nic.GID{GIDEntry: verbs.GIDEntry{GID: g, Index: i, Type: verbs.GIDRoCEv2, NetDev: netDev(port)}})
		}
	}
	size := 0
	for _, g := range p.GIDs {
		size = max(size, g.Index+1)
	}
	p.PortAttr.GIDs = max(p.PortAttr.GIDs, size)
}

// DefaultGIDs gives the link-local and the IPv4-mapped GID of a port of the
// fabric's number-th device, counted from 1: fe80:: with the port's GUID, and
// 10.x.y.z of the number, the port's number counted on top of 10.
func DefaultGIDs(number uint32, port int) []verbs.GID {
	local := verbs.GID{0: 0xfe, 1: 0x80}
	for i, g := 0, guid(number, port); i < 8; i++ {
		local[8+i] = byte(g >> (56 - 8*i))
	}
	v4 := verbs.GID{10: 0xff, 11: 0xff, 12: byte(9 + port), 13: byte(number >> 16), 14: byte(number >> 8), 15: byte(number)}
	return []verbs.GID{local, v4}
}

// guid is a locally administered EUI-64 of a device or port.
func guid(number uint32, port int) uint64 {
	return 0x0200_00ff_fe00_0000 | uint64(port)<<32 | uint64(number)
}

func netDev(port int) string { return "sim" + string(rune('0'+port-1)) }

// Info names the device.
func (d *Device) Info() verbs.DeviceInfo { return d.info }

// Stats gives the NIC's counters.
func (d *Device) Stats() Stats {
	d.node.mu.Lock()
	defer d.node.mu.Unlock()
	return d.node.nic.Stats()
}

// Open gives a context of its own.
func (d *Device) Open() (verbs.Context, error) {
	if d.lost.Load() {
		return nil, d.err("open device", "", verbs.ErrDeviceLost, "")
	}
	c := &Context{dev: d}
	c.events.init()
	d.mu.Lock()
	d.contexts = append(d.contexts, c)
	d.mu.Unlock()
	if d.single {
		d.reattach()
	}
	return c, nil
}

// err is an error of an operation on the device.
func (d *Device) err(op, object string, cause error, remedy string) error {
	return errors.WithStack(&verbs.OpError{Op: op, Device: d.info.Name, Object: object, Err: cause, Remedy: remedy})
}

// check is nil, or the loss of the device.
func (d *Device) check(op, object string) error {
	if d.lost.Load() {
		return d.err(op, object, verbs.ErrDeviceLost, "")
	}
	return nil
}
