package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// Collect lists the devices of a system. A machine without any, or a system that has
// no verbs, has an empty list, and the reason in Error if there is one.
func Collect(s *uverbs.System) *Document {
	d := &Document{Schema: Schema, Host: report.ThisHost(), NetNS: s.NetNSMode(), Devices: []Device{}}
	all, err := provider.RankOf(s)
	if err != nil {
		d.Error = err.Error()
	}
	for i := range all {
		d.Devices = append(d.Devices, Describe(s, &all[i]))
	}
	d.choose()
	return d
}

// choose says what is used by default.
func (d *Document) choose() {
	d.Default = Choice{Device: "sim:", Why: "no device of the kernel can be used"}
	if len(d.Devices) == 0 {
		d.Default.Why = cmp.Or(d.Error, "this machine has no RDMA device")
		return
	}
	best := &d.Devices[0]
	if best.Rank != 1 {
		return
	}
	d.Default = Choice{Device: best.Name, Why: best.Why}
	for _, p := range best.Ports {
		if p.Rank != 1 {
			continue
		}
		d.Default.Port = p.Port
		if i := slices.IndexFunc(p.GIDs, func(g GID) bool { return g.Rank == 1 }); i >= 0 {
			d.Default.GID = &p.GIDs[i].Index
			d.Default.Why += "; " + p.GIDs[i].Why
		}
	}
}

// Describe gives all that is known of a candidate: what the device says, and, also
// of one that cannot be opened, what sysfs says.
func Describe(s *uverbs.System, c *provider.Candidate) Device {
	k := c.Kernel
	d := Device{
		Name: c.Name, Rank: c.Rank, Why: c.Why, Provider: c.Provider, Driver: c.Driver, ABI: c.ABI, NetDev: c.NetDev, Node: k.Path,
		NodeType: nodeTypes[k.NodeType], Limits: limits(c.Attr),
	}
	if c.Err != nil {
		d.Error = c.Err.Error()
	}
	if k.Path != "" {
		d.NodeNumber = fmt.Sprintf("%d:%d", k.Major, k.Minor)
	}
	if g := c.NodeGUID; g != 0 {
		d.NodeGUID = fmt.Sprintf("%04x:%04x:%04x:%04x", g>>48, g>>32&0xffff, g>>16&0xffff, g&0xffff)
	}
	more := uverbs.Details{NUMANode: -1}
	if k.Name != "" {
		more = s.Details(k)
	}
	d.DriverVersion, d.PCI, d.LocalCPUs, d.Board, d.Type, d.Description = more.ModuleVersion, more.PCI, more.LocalCPUs, more.Board, more.Type, more.Description
	d.Firmware = more.Firmware
	if d.Firmware == "" && c.Attr != nil {
		d.Firmware = c.Attr.FirmwareVersion
	}
	if more.NUMANode >= 0 {
		d.NUMANode = &more.NUMANode
	}
	for _, p := range c.Ports {
		d.Ports = append(d.Ports, portOf(p))
	}
	for i, p := range more.Ports {
		if i >= len(d.Ports) {
			gids, _ := s.GIDs(c.Name, p.Port)
			d.Ports = append(d.Ports, Port{Port: p.Port, State: p.State.String(), LinkLayer: p.LinkLayer.String(), SpeedGbps: p.SpeedGbps, LID: int(p.LID), GIDs: seen(gids)})
		}
		d.Ports[i].add(p)
	}
	return d
}

// nodeTypes are those of enum rdma_node_type (rdma/ib_verbs.h).
var nodeTypes = map[int]string{1: "CA", 2: "switch", 3: "router", 4: "RNIC", 5: "usNIC", 6: "usNIC UDP", 7: "unspecified"}

func portOf(c provider.PortCandidate) Port {
	p := Port{
		Port: c.Port, Rank: c.Rank, Why: c.Why, State: c.Attr.State.String(), LinkLayer: c.Attr.LinkLayer.String(), MTUBytes: mtu(c.Attr.ActiveMTU),
		MaxMTU: mtu(c.Attr.MaxMTU), SpeedGbps: c.Attr.SpeedGbps, Width: c.Attr.Width, LID: int(c.Attr.LID),
	}
	if c.Attr.Speed != 0 {
		p.Lane = c.Attr.Speed.String()
	}
	for _, g := range c.GIDs {
		p.GIDs = append(p.GIDs, gidOf(g.GIDEntry, g.Rank, g.Why))
	}
	return p
}

func mtu(m qp.MTU) int {
	if m == 0 {
		return 0
	}
	return m.Bytes()
}

// seen is the table of a port that could not be asked: nothing of it is ranked.
func seen(gids []uverbs.SeenGID) (out []GID) {
	for _, g := range gids {
		out = append(out, gidOf(g.GIDEntry, 0, cmp.Or(g.Hidden, "the device cannot be used")))
	}
	return out
}

func gidOf(g verbs.GIDEntry, rank int, why string) GID {
	return GID{Index: g.Index, GID: g.GID.String(), Type: g.Type.String(), NetDev: g.NetDev, Rank: rank, Why: why}
}

// add takes over what only sysfs has.
func (p *Port) add(d uverbs.PortDetails) {
	p.Physical, p.Rate, p.SMLID = d.Physical, d.Rate, int(d.SMLID)
	if p.SpeedGbps == 0 {
		p.SpeedGbps = d.SpeedGbps
	}
	for _, k := range d.PKeys {
		p.PKeys = append(p.PKeys, fmt.Sprintf("%#04x", k))
	}
	if len(d.Counters) > 0 {
		p.Counters = d.Counters
	}
}

func limits(a *verbs.DeviceAttr) *Limits {
	if a == nil {
		return nil
	}
	return &Limits{
		QP: a.MaxQP, QPWR: a.MaxQPWR, SGE: a.MaxSGE, InlineBytes: a.MaxInline, CQ: a.MaxCQ, CQE: a.MaxCQE, MR: a.MaxMR, MRBytes: a.MaxMRSize, PD: a.MaxPD, SRQ: a.MaxSRQ, SRQWR: a.MaxSRQWR,
		Reads: a.MaxReads, DestReads: a.MaxDestReads, Atomics: a.Atomics, Global: a.AtomicsGlobal, MW: a.MaxMW, OnDemand: a.OnDemand.String(),
		ClockKHz: a.ClockKHz, Flags: a.Flags.String(), CompVectors: a.CompVectors, VendorID: fmt.Sprintf("%#06x", a.VendorID),
		VendorPartID: int(a.VendorPartID), HWVersion: int(a.HWVersion),
	}
}

// Find gives the one device of a name, simulated ones too, and everything of it.
func Find(s *uverbs.System, name string) (*Document, error) {
	if strings.HasPrefix(name, "sim:") {
		dev, err := provider.Open(name)
		if err != nil {
			return nil, err
		}
		c := provider.Judge(dev)
		return &Document{Schema: Schema, Host: report.ThisHost(), Default: Choice{Device: name, Why: "named"}, Devices: []Device{Describe(s, &c)}}, nil
	}
	d := Collect(s)
	known := []string{"sim:"}
	for _, dev := range d.Devices {
		known = append(known, dev.Name)
	}
	i := slices.Index(known, name) - 1
	if i < 0 {
		return nil, &verbs.OpError{Op: "find", Device: fmt.Sprintf("%q", name), Err: verbs.ErrNotFound, Remedy: "devices here: " + strings.Join(known, ", ")}
	}
	d.Devices = d.Devices[i : i+1]
	return d, nil
}
