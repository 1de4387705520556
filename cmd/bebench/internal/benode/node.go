// Package benode opens a device together with a node of ByteExpress on it.
package benode

import (
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm/stream"
	"github.com/byteexpress/byteexpress/verbs"
)

// Node is a node that owns its device's context. It is used as a be.Node is, and
// given back by its own Close.
type Node struct {
	*be.Node
	ctx verbs.Context
}

// Open opens the device and a node on it. With cm it finds its peers by rdma_cm.
func Open(dev verbs.Device, cfg be.Config, cm bool) (*Node, error) {
	ctx, err := dev.Open()
	if err != nil {
		return nil, err
	}
	if cm {
		cfg.Bootstrap, err = stream.New(ctx, stream.Config{Port: cfg.Port})
	}
	var node *be.Node
	if err == nil {
		node, err = be.NewNode(ctx, cfg)
	}
	if err != nil {
		_ = ctx.Close()
		return nil, err
	}
	return &Node{node, ctx}, nil
}

// Close closes the node, then the device, and gives the first error.
func (n *Node) Close() error {
	err := n.Node.Close()
	if closeErr := n.ctx.Close(); err == nil {
		err = closeErr
	}
	return err
}
