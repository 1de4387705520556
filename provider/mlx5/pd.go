//go:build linux

package mlx5

import (
	"fmt"
	"sync"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// domain is a protection domain.
type domain struct {
	ctx *devContext
	h   uverbs.PDHandle

	mu      sync.Mutex
	regions map[uverbs.MRHandle]mr.Region
	closed  bool
}

// Register registers memory from mmap.
func (d *domain) Register(buf []byte, access mr.Access) (mr.Region, error) {
	if err := d.ctx.attr.CheckMR(buf, access); err != nil {
		return mr.Region{}, d.ctx.fail("register memory region", "", err, "")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return mr.Region{}, d.ctx.fail("register memory region", "", verbs.ErrClosed, "")
	}
	r := mr.Region{Addr: mr.Addr(buf), Length: uint64(len(buf))}
	h, lkey, rkey, err := d.ctx.k.RegMR(d.h, r.Addr, r.Length, access, nil)
	if err != nil {
		return mr.Region{}, err
	}
	r.LKey, r.RKey, r.Handle = lkey, rkey, uint64(h)
	d.regions[h] = r
	return r, nil
}

// Deregister ends a region of this domain.
func (d *domain) Deregister(r mr.Region) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := uverbs.MRHandle(r.Handle)
	if have, ok := d.regions[h]; !ok || have != r {
		return d.ctx.fail("deregister memory region", r.String(), verbs.ErrClosed, "it is not, or no longer, registered in this domain")
	}
	if err := d.ctx.destroyed(d.ctx.k.DeregMR(h)); err != nil {
		return err
	}
	delete(d.regions, h)
	return nil
}

// CreateQP makes a queue pair in RESET.
func (d *domain) CreateQP(cfg verbs.QPConfig) (qp.QP, error) {
	if err := d.ctx.attr.CheckQP(cfg); err != nil {
		return nil, d.ctx.fail("create queue pair", "", err, "")
	}
	send, ok1 := cfg.SendCQ.(*completionQueue)
	recv, ok2 := cfg.RecvCQ.(*completionQueue)
	if !ok1 || !ok2 || send.ctx != d.ctx || recv.ctx != d.ctx {
		return nil, d.ctx.fail("create queue pair", "", fmt.Errorf("%w: a completion queue is of another context", verbs.ErrLimit), "use queues of this context")
	}
	return newQP(d, send, recv, cfg)
}

// Close gives the domain back; EBUSY while regions or queue pairs are in it.
func (d *domain) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.ctx.fail("deallocate protection domain", "", verbs.ErrClosed, "")
	}
	if err := d.ctx.destroyed(d.ctx.k.DeallocPD(d.h)); err != nil {
		return err
	}
	d.closed = true
	d.ctx.mu.Lock()
	d.ctx.pds--
	d.ctx.mu.Unlock()
	return nil
}
