package psjob

import (
	"sync"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/verbs"
)

// Nodes opens ByteExpress transports on a device, each with a context and a node of
// its own, and sums what they counted. Its methods may be called from any
// goroutine.
type Nodes struct {
	open  func() (verbs.Device, error)
	cfg   be.Config
	mu    sync.Mutex
	nodes []*be.Node
}

// NewNodes makes an empty set; open gives the device anew for each node.
func NewNodes(open func() (verbs.Device, error), cfg be.Config) *Nodes {
	return &Nodes{open: open, cfg: cfg}
}

// Open is an Open.
func (n *Nodes) Open() (archon.Transport, func() error, error) {
	dev, err := n.open()
	if err != nil {
		return nil, nil, err
	}
	ctx, err := dev.Open()
	if err != nil {
		return nil, nil, err
	}
	node, err := be.NewNode(ctx, n.cfg)
	if err != nil {
		_ = ctx.Close()
		return nil, nil, err
	}
	n.mu.Lock()
	n.nodes = append(n.nodes, node)
	n.mu.Unlock()
	return archon.BE{Node: node}, func() error {
		err := node.Close()
		if closeErr := ctx.Close(); err == nil {
			err = closeErr
		}
		return err
	}, nil
}

// Counters gives what explains a result, summed over all nodes.
func (n *Nodes) Counters() map[string]int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	var sum core.Stats
	var registrations int64
	for _, node := range n.nodes {
		s := node.Stats()
		sum.Add(&s.Stats)
		registrations += s.Memory.Register.Count
	}
	return Counters(&sum, registrations)
}

// Counters names the counts that a report shows.
func Counters(s *core.Stats, registrations int64) map[string]int64 {
	return map[string]int64{
		"credit_stalls": int64(s.CreditStalls), "credit_stall_ns": int64(s.CreditStall),
		"window_stalls": int64(s.WindowStalls), "window_stall_ns": int64(s.WindowStall),
		"slot_stalls": int64(s.SlotStalls), "slot_stall_ns": int64(s.SlotStall),
		"doorbells": int64(s.Doorbells), "requests": int64(s.Requests), "sends": int64(s.Sends), "fragments": int64(s.Fragments),
		"eager_messages": int64(s.Eager), "rendezvous_messages": int64(s.Rendezvous), "credit_messages": int64(s.CreditMessages),
		"rnr": int64(s.RNR), "failures": int64(s.Failures), "held": int64(s.Held), "copies": int64(s.Copies), "registrations": registrations,
	}
}
