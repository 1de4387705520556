package channel

import (
	"context"
	"net"
	"slices"
	"sync"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/verbs"
	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/archon/channel/core"
)

// Device is ByteExpress as a transport on a device that is opened when it is first
// needed, again when that failed, and anew when it was lost: so a program starts
// before its NIC is there, and outlives its removal. Channels of one process share a
// Device. Any goroutine may use it.
type Device struct {
	open func() (verbs.Context, error)
	cfg  be.Config

	mu     sync.Mutex
	node   *openNode
	old    []*openNode   // of lost devices, to be closed when their buffers are back
	fault  *be.StepError // that ended the last of them
	closed bool
}

// openNode is an opened device and the node on it.
type openNode struct {
	ctx  verbs.Context
	node *be.Node
}

// NewDevice makes a transport that opens its device by open, which may be called again
// and again, one call at a time.
func NewDevice(open func() (verbs.Context, error), cfg be.Config) *Device {
	return &Device{open: open, cfg: cfg}
}

// Dial implements archon.Transport.
func (d *Device) Dial(ctx context.Context, addr, service string) (archon.Socket, error) {
	n, err := d.Node()
	if err != nil {
		return nil, err
	}
	s, err := archon.BE{Node: n}.Dial(ctx, addr, service)
	if err != nil {
		d.Fault(err)
	}
	return s, err
}

// Listen implements archon.Transport. The listener ends with the device.
func (d *Device) Listen(addr string) (archon.Listener, error) {
	n, err := d.Node()
	if err != nil {
		return nil, err
	}
	return archon.BE{Node: n}.Listen(addr)
}

// Node gives the node on the device, which it opens if need be.
func (d *Device) Node() (*be.Node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.WithMessage(net.ErrClosed, "channel: device")
	}
	d.closeOld()
	if d.node == nil {
		n, err := d.openNode()
		if err != nil {
			return nil, &openError{core.NoDevice, err}
		}
		d.node = n
	}
	return d.node.node, nil
}

func (d *Device) openNode() (*openNode, error) {
	ctx, err := d.open()
	if err != nil {
		return nil, err
	}
	node, err := be.NewNode(ctx, d.cfg)
	if err != nil {
		ctx.Close()
		return nil, err
	}
	return &openNode{ctx, node}, nil
}

// Fault tells of an error of a connection. If the device is lost, or tells of no
// completions any more, the next Dial opens it anew.
func (d *Device) Fault(err error) {
	step, ok := lastStep(err)
	unarmed := ok && step.Step == be.StepArm
	if !unarmed && !errors.Is(err, verbs.ErrDeviceLost) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.node == nil || unarmed && step == d.fault: // known, by another connection of it
		return
	case !unarmed:
		if _, err := d.node.ctx.Attr(); !errors.Is(err, verbs.ErrDeviceLost) {
			return // it was an earlier one
		}
	default:
		d.fault = step
	}
	d.old = append(d.old, d.node)
	d.node = nil
}

// closeOld closes what can be closed; the caller holds mu.
func (d *Device) closeOld() (first error) {
	d.old = slices.DeleteFunc(d.old, func(n *openNode) bool {
		err := n.close()
		if err != nil && first == nil {
			first = err
		}
		return err == nil
	})
	return first
}

func (n *openNode) close() error {
	if err := n.node.Close(); err != nil {
		return err
	}
	return n.ctx.Close()
}

// Close closes the node and the device. It fails while buffers of them are in use, and
// may then be called again.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.node != nil {
		d.old = append(d.old, d.node)
		d.node = nil
	}
	return d.closeOld()
}
