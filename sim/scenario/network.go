package scenario

import (
	"cmp"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/internal/hugepage"
	"github.com/byteexpress/byteexpress/sim/fabric"
	"github.com/byteexpress/byteexpress/sim/tcp"
)

// network is what carries messages between hosts: engines of ByteExpress, or TCP.
type network interface {
	fabric() *fabric.Fabric
	// dial joins two hosts by a connection of its own, which is up when settle has
	// returned.
	dial(from, to int) (*line, error)
	// settle lets time pass until all connections are up.
	settle() error
	// fault does what a fault of a host means to what is above the network.
	fault(f *Fault, begins bool)
	// counters adds what it counted to a run's.
	counters(r *Run)
}

// line is a connection: messages arrive at the other end whole and in order.
type line struct {
	hosts [2]int
	// send sends so many bytes from one end, and calls done, which may be nil, when
	// the sender knows that they arrived, or with why they did not.
	send func(end, size int, done func(error)) error
	// got is called when a message arrived at an end.
	got [2]func(size int)
	// failed is called once, when the connection broke.
	failed func(error)
}

// lineBytes is what a connection takes of memory, with some to spare.
const lineBytes = 48 << 10

// expect prepares for so many connections. Each is used now and then, among all the
// others, so what it has is in no cache; in huge pages, at least its addresses are. It
// refuses more than the machine has memory for.
func expect(lines int) error {
	return errors.WithMessagef(hugepage.Heap(lines*lineBytes), "scenario: %d connections: fewer hosts need less", lines)
}

// rdmaTransport is engines of ByteExpress.
const rdmaTransport = "rdma"

// transports are those that a variant may name.
var transports = []string{rdmaTransport, "tcp-cubic-200", "tcp-cubic-5", "tcp-dctcp-5", tcpTransport, rcTransport, udTransport}

// caches are the profiles of a NIC's cache of contexts.
var caches = map[string]func() fabric.Contexts{
	"none": func() fabric.Contexts { return fabric.Contexts{} },
	"cx5":  fabric.ContextsCX5,
	"cx6":  fabric.ContextsCX6,
}

// dcqcnProfiles are the parameters of congestion control by name, for a link's rate.
var dcqcnProfiles = map[string]func(gbps int) fabric.DCQCN{
	"paper15": func(int) fabric.DCQCN { return fabric.DCQCN15() },
	"nic":     func(int) fabric.DCQCN { return fabric.DCQCNCX() },
	"ns3":     fabric.DCQCNHPCC,
	"off":     func(int) fabric.DCQCN { return fabric.DCQCN{} },
}

// over gives the parameters of a profile, but for those that are set.
func (d *DCQCN) over(p fabric.DCQCN) fabric.DCQCN {
	const mega = 1_000_000
	gain1024 := fabric.DCQCN15().Gain / 4 // which is 1/256
	if p == (fabric.DCQCN{}) {
		return p // off
	}
	return fabric.DCQCN{
		CNPInterval:   cmp.Or(d.CNPInterval.time(), p.CNPInterval),
		AlphaTimer:    cmp.Or(d.AlphaTimer.time(), p.AlphaTimer),
		IncreaseTimer: cmp.Or(d.IncreaseTimer.time(), p.IncreaseTimer),
		IncreaseBytes: cmp.Or(int64(d.IncreaseBytes), p.IncreaseBytes),
		FastSteps:     cmp.Or(d.FastSteps, p.FastSteps),
		Gain:          cmp.Or(int64(d.Gain)*gain1024, p.Gain),
		Rai:           cmp.Or(int64(d.Rai)*mega, p.Rai),
		Rhai:          cmp.Or(int64(d.Rhai)*mega, p.Rhai),
		Rmin:          cmp.Or(int64(d.Rmin)*mega, p.Rmin),
		DecreaseGap:   cmp.Or(d.DecreaseGap.time(), p.DecreaseGap),
		KeepTarget:    p.KeepTarget,
	}
}

// mtu is the variant's path MTU in bytes.
func (v *Variant) mtu(s *Scenario) int { return cmp.Or(v.MTU, s.NIC.MTU) }

// buildFabric makes the network of a variant.
func (s *Scenario) buildFabric(v *Variant) (*fabric.Fabric, error) {
	t, sw := &s.Topology, &s.Switch
	cfg := fabric.Config{
		Seed: s.Seed, SkipWrites: true,
		Switch: fabric.SwitchConfig{
			BufferBytes: sw.BufferBytes, EgressBytes: sw.EgressBytes, Latency: sw.Latency.time(), PFC: !sw.Lossy,
			PauseQuanta: sw.PauseQuanta, PauseShare: sw.PauseShare, PauseBytes: sw.PauseBytes, LossyShare: sw.LossyShare,
			ECN: fabric.ECN{KminBytes: sw.KminBytes, KmaxBytes: sw.KmaxBytes, Pmax: sw.Pmax, Gbps: sw.ECNGbps},
		},
		NIC: fabric.NICConfig{
			MTU: mtuOf(v.mtu(s)), CNPGap: s.NIC.Params.CNPGap.time(), Quantum: s.NIC.Quantum, Contexts: caches[s.NIC.Cache](), WQEs: s.NIC.WQECache.cache(),
			Pages: fabric.Pages{Cache: s.NIC.MTTCache.cache(), PageBytes: cmp.Or(v.PageBytes, s.NIC.PageBytes)},
		},
	}
	if c, ok := s.tcpConfig(v); ok && c.Control == tcp.DCTCP {
		cfg.Switch.LossyECN = fabric.ECNDCTCP()
		if k := sw.TCPECNBytes; k > 0 {
			cfg.Switch.LossyECN.KminBytes, cfg.Switch.LossyECN.KmaxBytes = k, k
		}
	}
	if !v.NoDCQCN {
		cfg.NIC.DCQCN = s.NIC.Params.over(dcqcnProfiles[s.NIC.DCQCN](cmp.Or(v.Gbps, t.Gbps)))
	}
	f, err := t.build(cfg, v.Gbps)
	return f, errors.Wrap(err, "topology")
}

// newNetwork makes the network of a variant with what carries its messages.
func (s *Scenario) newNetwork(v *Variant) (network, error) {
	switch v.Transport {
	case rdmaTransport:
		return newEngines(s, v)
	case rcTransport, udTransport:
		return newVerbs(s, v)
	}
	return newTCP(s, v)
}
