//go:build linux

package rxe

import (
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// devContext is an opened rxe device.
type devContext struct{ *kdev.Context }

func newContext(k *uverbs.Context, info verbs.DeviceInfo) (*devContext, error) {
	c, err := kdev.New(k, info, k.QueryDevice)
	if err != nil {
		return nil, err
	}
	c.BindsWindows = true
	c.Start()
	return &devContext{c}, nil
}

// AllocPD makes a protection domain.
func (c *devContext) AllocPD() (verbs.PD, error) {
	return kdev.NewDomain(c.Context, nil, c.newQP, c.newSRQ)
}
