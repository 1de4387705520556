//go:build linux

package mlx5

import (
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// domain is a protection domain.
type domain struct {
	*kdev.PD
	ctx *devContext
}

// CreateQP makes a queue pair in RESET.
func (d *domain) CreateQP(cfg verbs.QPConfig) (qp.QP, error) {
	send, recv, err := kdev.Queues[*completionQueue](d.PD, cfg)
	if err != nil {
		return nil, err
	}
	srq, err := kdev.Shared[*sharedQueue](d.PD, cfg)
	if err != nil {
		return nil, err
	}
	return newQP(d, send, recv, srq, cfg)
}

// CreateSRQ makes a shared receive queue.
func (d *domain) CreateSRQ(cfg verbs.SRQConfig) (qp.SRQ, error) {
	if err := d.ctx.Limits.CheckSRQ(cfg); err != nil {
		return nil, d.ctx.Fail("create shared receive queue", "", err, "")
	}
	return newSRQ(d, cfg.Caps)
}
