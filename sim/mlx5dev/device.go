//go:build linux

package mlx5dev

import (
	"fmt"
	"sync"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/sim"
)

// Config is what a model is made of. The zero value is a NIC of today with a driver
// of today.
type Config struct {
	// BFRegs is how many doorbell registers the driver gives to a context at once,
	// as older drivers do; 0: their pages are asked for one by one. With registers
	// at once, one context can be open at a time.
	BFRegs int
	// CQEVersion0 makes completions name queue pairs by number instead of by user
	// index, as old firmware does.
	CQEVersion0 bool
	// ABI is the version of the driver's ABI; 0 means 1.
	ABI int
}

// Limits of the model's NIC.
const (
	maxSendDesc   = 1024 // bytes a send request
	maxRecvDesc   = 512  // bytes a receive request
	maxSendBlocks = 32768
	maxRecvWR     = 32768
	maxSharedWR   = 32768 // slots of a shared receive queue
	bfRegSize     = 512   // bytes of a register's two buffers
	uarPageSize   = 4096
)

// SimConfig is the configuration of a simulated NIC that can do all that the model
// promises.
func SimConfig() sim.DeviceConfig {
	a := sim.DefaultAttr()
	a.MaxQPWR, a.MaxSGE, a.MaxInline, a.MaxCQE, a.MaxSRQWR = maxSendBlocks, maxSendDesc/segment, maxSendDesc, 1<<22, maxSharedWR
	return sim.DeviceConfig{Limits: a}
}

// Device is a model of a NIC and its driver, on top of a simulated NIC. Its
// methods may be called from any goroutine.
type Device struct {
	hw  *sim.Device
	cfg Config

	mu      sync.RWMutex // nothing of the simulated NIC is called while it is held
	files   map[int]*file
	uars    map[int64]*mmio.Mapping // by offset in the device's file
	qps     map[uint32]*queuePair   // by number
	records map[uint64]receiver     // by address
	cqs     map[uint32]*compQueue   // by number
	handles uint32
	pages   int64
	faults  []*Fault
}

// receiver is whose doorbell record counts receives.
type receiver interface{ receive() }

// maxFaults bounds the faults that are kept.
const maxFaults = 100

// New makes a model on top of a simulated NIC, which should be made with SimConfig.
func New(hw *sim.Device, cfg Config) *Device {
	return &Device{
		hw: hw, cfg: cfg, files: map[int]*file{}, uars: map[int64]*mmio.Mapping{}, qps: map[uint32]*queuePair{},
		records: map[uint64]receiver{}, cqs: map[uint32]*compQueue{}, handles: 0x100,
		pages: int64(cfg.BFRegs / registers), // those given at once have the numbers before
	}
}

// Faults gives what broke a rule so far, the first hundred.
func (d *Device) Faults() []*Fault {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return append([]*Fault(nil), d.faults...)
}

func (d *Device) fault(f *Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, f)
	}
}

func (d *Device) queuePair(number uint32) *queuePair {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.qps[number]
}

// Registers of a UAR page.
const (
	armRegister   = 0x20
	firstRegister = 0x800
	registers     = 2 // with two buffers each
)

// Rung says that n bytes were stored at an offset of the register page that was
// mapped from that offset of the device's file.
func (d *Device) Rung(page int64, off, n int) {
	d.mu.RLock()
	m := d.uars[page]
	d.mu.RUnlock()
	if m == nil {
		d.badStore(page, off, "there is no such page")
		return
	}
	if off < 0 || n < 8 || n > bfRegSize || off%8 != 0 || off > uarPageSize-n {
		d.badStore(page, off, fmt.Sprintf("store of %d bytes is not in the page, or not aligned", n))
		return
	}
	v := beUint64(m.Bytes()[off:])
	if off == armRegister {
		d.mu.RLock()
		c := d.cqs[uint32(v)&indexMask]
		d.mu.RUnlock()
		rule := "arm doorbell names no completion queue"
		if c != nil {
			rule = c.doorbell(v)
		}
		if rule != "" {
			d.badStore(page, off, rule)
		}
		return
	}
	in := off - firstRegister
	if in < 0 || in >= 4*bfRegSize || in%(bfRegSize/2) != 0 || n != 8 && (n%block != 0 || n > bfRegSize/2) {
		d.badStore(page, off, fmt.Sprintf("store of %d bytes is no doorbell", n))
		return
	}
	q := d.queuePair(uint32(v) >> 8)
	if q == nil {
		d.badStore(page, off, fmt.Sprintf("doorbell names queue pair %#x, which does not exist", uint32(v)>>8))
		return
	}
	var copied []byte
	if n > 8 {
		copied = m.Bytes()[off : off+n]
	}
	q.send(v, copied)
}

func (d *Device) badStore(page int64, off int, rule string) {
	d.fault(&Fault{Object: fmt.Sprintf("register %#x of UAR at %#x", off, page), Rule: rule})
}

// Received says that the doorbell record at this address has a new number of
// receives.
func (d *Device) Received(record uint64) {
	d.mu.RLock()
	q := d.records[record]
	d.mu.RUnlock()
	if q == nil {
		d.fault(&Fault{Object: fmt.Sprintf("record at %#x", record), Rule: "there is no receive queue with this doorbell record"})
		return
	}
	q.receive()
}
