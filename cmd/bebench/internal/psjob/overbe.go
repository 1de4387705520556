package psjob

import (
	"sync"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/benode"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/counts"
	"github.com/byteexpress/byteexpress/verbs"
)

// Nodes opens ByteExpress transports on a device, each with a context and a node of
// its own, and sums what they counted. Its methods may be called from any
// goroutine.
type Nodes struct {
	open  func() (verbs.Device, error)
	cfg   be.Config
	cm    bool
	mu    sync.Mutex
	nodes []*benode.Node
}

// NewNodes makes an empty set; open gives the device anew for each node. With cm the
// nodes find each other by rdma_cm.
func NewNodes(open func() (verbs.Device, error), cfg be.Config, cm bool) *Nodes {
	return &Nodes{open: open, cfg: cfg, cm: cm}
}

// Open is an Open.
func (n *Nodes) Open() (archon.Transport, func() error, error) {
	dev, err := n.open()
	if err != nil {
		return nil, nil, err
	}
	node, err := benode.Open(dev, n.cfg, n.cm)
	if err != nil {
		return nil, nil, err
	}
	n.mu.Lock()
	n.nodes = append(n.nodes, node)
	n.mu.Unlock()
	return archon.BE{Node: node.Node}, node.Close, nil
}

// Counters gives what explains a result, summed over all nodes.
func (n *Nodes) Counters() map[string]int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := map[string]int64{}
	for _, node := range n.nodes {
		s := node.Stats()
		counts.Add(sum, counts.Of(&s))
	}
	return sum
}
