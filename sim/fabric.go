package sim

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/nic"
	"github.com/byteexpress/byteexpress/verbs"
)

// Config is what a fabric is made of. The zero value is a fast fabric without
// faults. It is not changed after NewFabric.
type Config struct {
	// Seed of keys, queue pair numbers and faults.
	Seed uint64
	// Segment cuts messages into packets of the path MTU, as on a real network.
	// Otherwise a message is one packet.
	Segment bool
}

// Fabric joins NICs inside the process. Its methods may be called from any
// goroutine.
type Fabric struct {
	cfg     Config
	known   bool // a way to a GID that nobody has is refused
	base    time.Time
	faults  faults
	share   time.Duration // see the constant
	running atomic.Int64  // goroutines of our own that run NICs

	epoch atomic.Uint64 // moves on when addresses change

	mu      sync.RWMutex
	gids    map[verbs.GID]*node
	devices map[string]*Device
	numbers uint32 // devices made
	closed  bool
}

// NewFabric makes a fabric without devices.
func NewFabric(cfg Config) *Fabric {
	f := &Fabric{cfg: cfg, base: time.Now(), share: share, gids: make(map[verbs.GID]*node), devices: make(map[string]*Device)}
	f.faults.init(f, cfg.Seed)
	return f
}

// NewDevice adds a NIC to the fabric. The name must be new on it.
func (f *Fabric) NewDevice(name string, cfg DeviceConfig) (*Device, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errors.Wrapf(verbs.ErrClosed, "new device %s: fabric", name)
	}
	if f.devices[name] != nil {
		return nil, errors.Errorf("new device %s: the fabric has a device of that name", name)
	}
	f.numbers++
	d, err := newDevice(f, name, f.numbers, cfg)
	if err != nil {
		return nil, errors.Wrapf(err, "new device %s", name)
	}
	f.devices[name] = d
	f.attach(d, d.gids()) // nobody else can hold the new node's lock
	return d, nil
}

// attach makes the GIDs of a device known. Preconditions: f.mu is held.
func (f *Fabric) attach(d *Device, gids []verbs.GID) {
	for _, g := range gids {
		f.gids[g] = d.node
	}
	f.epoch.Add(1)
}

// detach forgets the GIDs of a device. Preconditions: f.mu is held.
func (f *Fabric) detach(d *Device) {
	for g, n := range f.gids {
		if n == d.node {
			delete(f.gids, g)
		}
	}
	f.epoch.Add(1)
}

// Close removes every device and waits until nothing runs any more. Objects that
// are still open report the loss of their device.
func (f *Fabric) Close() error {
	f.mu.Lock()
	f.closed = true
	var all []*Device
	for _, d := range f.devices {
		all = append(all, d)
	}
	f.mu.Unlock()
	f.faults.stop()
	for _, d := range all {
		d.Remove()
	}
	await(func() bool { return f.running.Load() == 0 })
	return nil
}

// now is the fabric's time.
func (f *Fabric) now() time.Duration { return time.Since(f.base) }

// random gives a source of its own to an object of the fabric.
func (f *Fabric) random(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(f.cfg.Seed, cmp.Or(stream, 1<<63)))
}

// route is the way from a NIC to a GID. It belongs to whoever runs that NIC.
type route struct {
	dgid  verbs.GID
	dst   *node // nil: nobody has that GID
	epoch uint64
	moved bool // led elsewhere before
}

// direct is the fabric as the NICs see it.
type direct struct{ *Fabric }

func (f direct) Route(_ *nic.NIC, _ verbs.GIDEntry, av *qp.AV) (nic.Route, error) {
	r := &route{dgid: av.DGID}
	f.resolve(r)
	if r.dst == nil && f.known {
		return nil, errors.Wrapf(syscall.EHOSTUNREACH, "no simulated device of this process has GID %v: %s devices reach those of their own process alone, between processes use a real one or rxe", r.dgid, Prefix)
	}
	return r, nil
}

func (f direct) resolve(r *route) {
	r.epoch = f.epoch.Load()
	f.mu.RLock()
	dst := f.gids[r.dgid]
	f.mu.RUnlock()
	r.moved = r.moved || r.dst != nil && dst != r.dst
	r.dst = dst
}

func (f direct) Send(n *nic.NIC, p *nic.Packet) nic.Ticket {
	r := p.Route.(*route)
	if r.epoch != f.epoch.Load() {
		f.resolve(r)
	}
	src := n.Owner.(*node)
	if r.dst == nil || f.faults.on.Load() && f.faults.strike(src, r.dst, p) {
		return 0
	}
	return src.push(r.dst, p)
}

// push puts a packet in a node's inbox. Preconditions: the caller runs n.
func (n *node) push(dst *node, p *nic.Packet) nic.Ticket {
	b := &dst.inbox
	b.Lock()
	b.packets = append(b.packets, *p)
	b.pushed++
	t := b.pushed
	if dst.claim() {
		n.woken.add(dst)
	}
	b.Unlock()
	return nic.Ticket(t)
}

func (f direct) Processed(r nic.Route, t nic.Ticket) bool {
	w := r.(*route)
	return w.dst == nil || w.moved || w.dst.done.Load() >= uint64(t)
}

func (f direct) Ring(n *nic.NIC, q *nic.QP) {
	dst := q.NIC().Owner.(*node)
	b := &dst.inbox
	b.Lock()
	b.bells = append(b.bells, q)
	if dst.claim() {
		n.Owner.(*node).woken.add(dst)
	}
	b.Unlock()
}
