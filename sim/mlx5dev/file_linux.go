package mlx5dev

import (
	"context"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// Device number of the model's node.
const nodeMajor, nodeMinor = 231, 255

// Node is the device as package uverbs would find it.
func (d *Device) Node() uverbs.Device {
	i := d.hw.Info()
	return uverbs.Device{
		Name: i.Name, Node: "uverbs255", Path: "/dev/infiniband/uverbs255", Major: nodeMajor, Minor: nodeMinor, Driver: uverbs.DriverMLX5,
		Kernel: "mlx5_core", ABI: max(d.cfg.ABI, 1), NodeType: 1, NodeGUID: i.NodeGUID, Ports: i.Ports,
	}
}

// System is a kernel whose only device is the model.
func (d *Device) System() *uverbs.System {
	return &uverbs.System{SysRoot: "/simulated", OpenNode: d.openNode, CloseNode: d.closeNode, Ioctl: d.ioctl}
}

// file is an opened node. What it maps, UAR pages, is memory of its descriptor.
type file struct {
	dev  *Device
	fd   int
	ctx  *sim.Context
	uars map[uint32]int64 // offset, by page number: those of this file

	mu       sync.Mutex // objects; held by requests about them
	pds      map[uint32]*domain
	mrs      map[uint32]*region
	windows  map[uint32]*window
	cqs      map[uint32]*compQueue
	qps      map[uint32]*queuePair
	srqs     map[uint32]*sharedQueue
	handles  map[uint32]uint32 // of UARs: page number
	channels map[int]int       // write ends, by read end
	async    int               // write end; 0: none

	stop    context.CancelFunc
	reading sync.WaitGroup
}

type domain struct {
	core verbs.PD
	used int
}

type region struct {
	pd     *domain
	core   mr.Region
	access mr.Access
}

type window struct {
	pd   *domain
	mem  verbs.Memory
	core mr.Window
}

func (d *Device) openNode(string) (int, uint64, error) {
	fd, err := unix.MemfdCreate("mlx5dev", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, 0, err
	}
	f := &file{dev: d, fd: fd, uars: map[uint32]int64{}, pds: map[uint32]*domain{}, mrs: map[uint32]*region{}, windows: map[uint32]*window{}, cqs: map[uint32]*compQueue{},
		qps: map[uint32]*queuePair{}, srqs: map[uint32]*sharedQueue{}, handles: map[uint32]uint32{}, channels: map[int]int{}}
	d.mu.Lock()
	d.files[fd] = f
	d.mu.Unlock()
	return fd, unix.Mkdev(nodeMajor, nodeMinor), nil
}

// closeNode ends a context with all that is left of it.
func (d *Device) closeNode(fd int) error {
	d.mu.Lock()
	f := d.files[fd]
	delete(d.files, fd)
	d.mu.Unlock()
	if f != nil {
		f.close()
	}
	return unix.Close(fd)
}

func (f *file) close() {
	if f.stop != nil {
		f.stop()
	}
	f.reading.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.qps {
		f.dropQP(q)
		q.core.Close()
	}
	for _, s := range f.srqs {
		f.dropRecord(s.addr)
		s.core.Close()
	}
	for _, c := range f.cqs {
		f.dropCQ(c)
		c.core.Close()
	}
	for _, w := range f.windows {
		w.mem.FreeWindow(w.core)
	}
	for _, r := range f.mrs {
		r.pd.core.Deregister(r.core)
	}
	for _, p := range f.pds {
		p.core.Close()
	}
	for _, offset := range f.uars {
		f.dropUAR(offset)
	}
	for _, w := range f.channels {
		unix.Close(w)
	}
	if f.async != 0 {
		unix.Close(f.async)
	}
	if f.ctx != nil {
		f.ctx.Close()
	}
}

// addUAR makes a page of registers at an offset of the file.
func (f *file) addUAR(page uint32, offset int64) syscall.Errno {
	if err := unix.Ftruncate(f.fd, max(offset+uarPageSize, f.size())); err != nil {
		return unix.ENOMEM
	}
	m, err := mmio.Map(f.fd, offset, uarPageSize)
	if err != nil {
		return unix.ENOMEM
	}
	d := f.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uars[offset] != nil {
		m.Close()
		return unix.EBUSY
	}
	d.uars[offset] = m
	f.uars[page] = offset
	return 0
}

func (f *file) size() int64 {
	var st unix.Stat_t
	if unix.Fstat(f.fd, &st) != nil {
		return 0
	}
	return st.Size
}

func (f *file) dropUAR(offset int64) {
	d := f.dev
	d.mu.Lock()
	m := d.uars[offset]
	delete(d.uars, offset)
	d.mu.Unlock()
	if m != nil {
		m.Close()
	}
}

func (f *file) dropQP(q *queuePair) {
	d := f.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.qps, q.number)
	delete(d.records, q.addr)
}

func (f *file) dropRecord(addr uint64) {
	d := f.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.records, addr)
}

func (f *file) dropCQ(c *compQueue) {
	d := f.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.cqs, c.number)
}

// handle gives a number that no object of the device has.
func (d *Device) handle() uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handles++
	return d.handles
}

// pipe makes an event descriptor: its read end and the one to write to, which drops
// events that nobody fetches rather than block.
func pipe() (r, w int, errno syscall.Errno) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return -1, -1, unix.EMFILE
	}
	return p[0], p[1], 0
}

// forward passes the simulated NIC's events on until the file is closed.
func (f *file) forward(ctx context.Context) {
	for {
		e, err := f.ctx.NextEvent(ctx)
		if err != nil {
			if ctx.Err() == nil { // removed: reading ends
				f.mu.Lock()
				unix.Close(f.async)
				f.async = 0
				f.mu.Unlock()
			}
			return
		}
		var b [asyncEventSize]byte
		asyncEventEventType.Put(b[:], uint32(e.Type))
		asyncEventElement.Put(b[:], uint64(e.Port))
		f.mu.Lock()
		known := true
		switch {
		case e.CQ != nil:
			known = false
			for _, c := range f.cqs {
				if c.core == e.CQ {
					asyncEventElement.Put(b[:], c.user)
					c.async++
					known = true
				}
			}
		case e.SRQ != nil:
			known = false
			for _, s := range f.srqs {
				if s.core == e.SRQ {
					asyncEventElement.Put(b[:], s.user)
					s.async++
					known = true
				}
			}
		case e.QP != 0:
			known = false
			for _, q := range f.qps {
				if q.number == uint32(e.QP) {
					asyncEventElement.Put(b[:], q.user)
					q.async++
					known = true
				}
			}
		}
		if known {
			unix.Write(f.async, b[:])
		}
		f.mu.Unlock()
	}
}
