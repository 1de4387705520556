package sim

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/nic"
	"github.com/byteexpress/byteexpress/verbs"
)

// PD is a protection domain, a verbs.PD.
type PD struct {
	ctx  *Context
	core nic.PD

	mu      sync.Mutex
	closed  bool
	regions map[mr.LKey]*nic.Region
	qps     int
	srqs    int
	windows map[uint64]window // by handle
	handle  uint64            // of the last window
}

func (p *PD) check(op, object string) error {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return p.ctx.dev.err(op, object, verbs.ErrClosed, "")
	}
	return p.ctx.check(op, object)
}

// Register makes buf known to the NIC.
func (p *PD) Register(buf []byte, access mr.Access) (mr.Region, error) {
	const op = "register memory"
	d := p.ctx.dev
	what := fmt.Sprintf("%d bytes at %#x", len(buf), mr.Addr(buf))
	if err := p.check(op, what); err != nil {
		return mr.Region{}, err
	}
	if err := d.attr.CheckMR(buf, access); err != nil {
		return mr.Region{}, d.err(op, what, err, "")
	}
	if s := d.cfg.PageSize; s > 0 && (mr.Addr(buf)%s != 0 || uint64(len(buf))%s != 0) {
		return mr.Region{}, d.err(op, what, fmt.Errorf("%w: start and length must be multiples of the page of %d bytes", syscall.EINVAL, s), "register whole pages")
	}
	if d.refused() {
		return mr.Region{}, d.err(op, what, fmt.Errorf("%w: refused by an injected fault", syscall.ENOMEM), "")
	}
	if err := d.lock(uint64(len(buf)), op, what); err != nil {
		return mr.Region{}, err
	}
	d.node.mu.Lock()
	r, err := d.node.nic.CreateRegion(&p.core, buf, access)
	d.node.mu.Unlock()
	if err != nil {
		d.unlock(uint64(len(buf)))
		return mr.Region{}, d.err(op, what, err, fmt.Sprintf("the device has at most %d memory regions: register fewer, larger ones", d.attr.MaxMR))
	}
	p.mu.Lock()
	if p.regions == nil {
		p.regions = make(map[mr.LKey]*nic.Region)
	}
	p.regions[r.LKey] = r
	p.mu.Unlock()
	return r.Region, nil
}

// Deregister ends a region. It returns when no packet on its way refers to the
// memory any more.
func (p *PD) Deregister(region mr.Region) error {
	d := p.ctx.dev
	p.mu.Lock()
	r, err := p.region(region, "deregister memory")
	if err != nil {
		p.mu.Unlock()
		return err
	}
	d.node.mu.Lock()
	bound := r.Bound()
	if bound == 0 {
		delete(p.regions, region.LKey)
		d.node.nic.DestroyRegion(r)
	}
	d.node.mu.Unlock()
	p.mu.Unlock()
	if bound > 0 {
		return d.err("deregister memory", region.String(), fmt.Errorf("%w: %d memory windows are bound to it", syscall.EBUSY, bound), "invalidate or free them first")
	}
	await(r.Idle)
	d.unlock(r.Length)
	return nil
}

// region finds a region of this domain. Preconditions: p.mu is held.
func (p *PD) region(region mr.Region, op string) (*nic.Region, error) {
	r := p.regions[region.LKey]
	if r == nil || r.Region != region {
		return nil, p.ctx.dev.err(op, region.String(), verbs.ErrClosed, "it is not, or no longer, registered in this domain")
	}
	return r, nil
}

// await waits for the end of copies that run right now.
func await(idle func() bool) {
	for i := 0; !idle(); i++ {
		if i < 100 {
			runtime.Gosched()
		} else {
			time.Sleep(10 * time.Microsecond)
		}
	}
}

// CreateQP makes a queue pair in state RESET.
func (p *PD) CreateQP(cfg verbs.QPConfig) (qp.QP, error) {
	const op = "create"
	d := p.ctx.dev
	what := fmt.Sprintf("queue pair of %d send and %d receive requests", cfg.Caps.SendWR, cfg.Caps.RecvWR)
	if err := p.check(op, what); err != nil {
		return nil, err
	}
	if err := d.attr.CheckQP(cfg); err != nil {
		return nil, d.err(op, what, err, "")
	}
	send, ok1 := cfg.SendCQ.(*CQ)
	recv, ok2 := cfg.RecvCQ.(*CQ)
	if !ok1 || !ok2 || send.ctx != p.ctx || recv.ctx != p.ctx {
		return nil, d.err(op, what, fmt.Errorf("%w: the completion queues belong to another context", syscall.EINVAL), "")
	}
	var srq *SRQ
	if cfg.SRQ != nil {
		s, ok := cfg.SRQ.(*SRQ)
		if !ok || s.pd != p {
			return nil, d.err(op, what, fmt.Errorf("%w: the shared receive queue belongs to another protection domain", syscall.EINVAL), "")
		}
		srq = s
	}
	q := &QP{pd: p, maxMessage: 1 << 31}
	if err := q.create(send, recv, srq, cfg); err != nil {
		remedy := ""
		if errors.Is(err, verbs.ErrLimit) {
			remedy = fmt.Sprintf("the device has at most %d queue pairs", d.attr.MaxQP)
		}
		return nil, d.err(op, what, err, remedy)
	}
	p.mu.Lock()
	p.qps++
	p.mu.Unlock()
	return q, nil
}

// Close gives the domain back.
func (p *PD) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return p.ctx.dev.err("close protection domain", "", verbs.ErrClosed, "")
	}
	if len(p.regions)+len(p.windows)+p.qps+p.srqs > 0 {
		err := fmt.Errorf("%w: %d memory regions, %d memory windows, %d queue pairs and %d shared receive queues are open",
			syscall.EBUSY, len(p.regions), len(p.windows), p.qps, p.srqs)
		p.mu.Unlock()
		return p.ctx.dev.err("close protection domain", "", err, "close them first")
	}
	p.closed = true
	p.mu.Unlock()
	c := p.ctx
	c.dev.mu.Lock()
	c.dev.pds--
	c.dev.mu.Unlock()
	c.mu.Lock()
	c.pds--
	c.mu.Unlock()
	return nil
}
