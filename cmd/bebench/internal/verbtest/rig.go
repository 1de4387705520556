package verbtest

import (
	"fmt"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// rig is the opened device of one end: context, protection domain and the way
// out of it.
type rig struct {
	ctx     verbs.Context
	pd      verbs.PD
	attr    verbs.DeviceAttr
	port    verbs.PortAttr
	portNum uint8 // of port
	gid     verbs.GIDEntry
	mtu     qp.MTU
}

// openRig opens the device and chooses port, GID and MTU.
func openRig(dev verbs.Device, p *Params) (_ *rig, err error) {
	r := &rig{}
	defer func() {
		if err != nil {
			_ = r.close()
		}
	}()
	if r.ctx, err = dev.Open(); err != nil {
		return nil, err
	}
	if r.attr, err = r.ctx.Attr(); err != nil {
		return nil, err
	}
	name, port := r.ctx.Info().Name, p.Port
	if port == 0 {
		if port, err = verbs.BestPort(r.ctx); err != nil {
			return nil, err
		}
	}
	if n := r.ctx.Info().Ports; port < 1 || port > n {
		return nil, errors.Errorf("%s: port %d: the device has ports 1 to %d: choose with -i", name, port, n)
	}
	r.portNum = uint8(port)
	if r.port, err = r.ctx.Port(port); err != nil {
		return nil, err
	}
	if r.port.State != verbs.PortActive {
		return nil, errors.Errorf("%s: port %d is %v, not ACTIVE: bring its link up, or choose another port with -i", name, port, r.port.State)
	}
	gids, err := r.ctx.GIDs(port)
	if err != nil {
		return nil, err
	}
	if r.gid, err = r.chooseGID(gids, p.GIDIndex); err != nil {
		return nil, errors.WithMessagef(err, "%s: port %d", name, port)
	}
	r.mtu = r.port.ActiveMTU
	if p.MTUBytes != 0 {
		m, ok := qp.MTUOf(p.MTUBytes)
		if !ok || m > r.port.ActiveMTU {
			return nil, errors.Errorf("%s: MTU %d: want 256, 512, 1024, 2048 or 4096, and at most the port's active MTU of %v", name, p.MTUBytes, r.port.ActiveMTU)
		}
		r.mtu = m
	}
	r.pd, err = r.ctx.AllocPD()
	return r, err
}

// chooseGID takes the entry with the index, or the best that works.
func (r *rig) chooseGID(gids []verbs.GIDEntry, index int) (verbs.GIDEntry, error) {
	if index >= 0 {
		for _, g := range gids {
			if g.Index == index {
				return g, nil
			}
		}
		return verbs.GIDEntry{}, errors.Errorf("no GID with index %d: `bebench devices` lists them, choose with -x", index)
	}
	ranked := verbs.RankGIDs(gids)
	switch infiniband := r.port.LinkLayer == verbs.LinkInfiniBand; {
	case len(ranked) > 0 && infiniband:
		return ranked[0], nil
	case infiniband:
		return verbs.GIDEntry{}, nil // addressed by LID
	case len(ranked) > 0:
		return verbs.UsableGID(r.ctx, int(r.portNum), ranked)
	}
	return verbs.GIDEntry{}, errors.New("the GID table is empty: give the network interface an IP address")
}

// Describe opens the device as a test would, says what was chosen, and closes it.
func Describe(dev verbs.Device, p *Params) (report.Device, error) {
	r, err := openRig(dev, p)
	if err != nil {
		return report.Device{}, err
	}
	return r.describe(), r.close()
}

// describe gives the device for the document.
func (r *rig) describe() report.Device {
	d := report.Device{Name: r.ctx.Info().Name, Provider: r.ctx.Info().Provider, Port: int(r.portNum), MTUBytes: r.mtu.Bytes()}
	if !r.gid.GID.IsZero() {
		d.GID = r.gid.GID.String()
	}
	return d
}

// close gives everything back and says what could not be.
func (r *rig) close() error {
	var first error
	if r.pd != nil {
		first = r.pd.Close()
	}
	if r.ctx != nil {
		if err := r.ctx.Close(); first == nil {
			first = err
		}
	}
	return first
}

// endpoint is what one end tells the other of itself and its queue pairs.
type endpoint struct {
	Link         string    `json:"link_layer"`
	GID          verbs.GID `json:"gid"`
	GIDType      string    `json:"gid_type"`
	LID          uint16    `json:"lid"`
	MTUBytes     int       `json:"mtu_bytes"`
	MaxReads     int       `json:"max_reads"`
	MaxDestReads int       `json:"max_dest_reads"`
	Flows        [][]qpEnd `json:"flows"`
}

// qpEnd is one queue pair and its memory.
type qpEnd struct {
	Num    qp.Num `json:"qpn"`
	PSN    qp.PSN `json:"psn"`
	Addr   uint64 `json:"addr"`
	RKey   uint32 `json:"rkey"`
	Length uint64 `json:"length"`
}

func (r *rig) endpoint() endpoint {
	return endpoint{
		Link: r.port.LinkLayer.String(), GID: r.gid.GID, GIDType: r.gid.Type.String(), LID: r.port.LID, MTUBytes: r.mtu.Bytes(),
		MaxReads: r.attr.MaxReads, MaxDestReads: r.attr.MaxDestReads,
	}
}

// address is the endpoint's, which has our link layer.
func (e *endpoint) address(r *rig) verbs.Address {
	return verbs.Address{Link: r.port.LinkLayer, LID: e.LID, GID: e.GID}
}

// global reports whether packets to the peer carry a global route header: where they
// must, and where a GID was chosen.
func (r *rig) global(p *Params, mine, peer *endpoint) bool {
	must, _ := mine.address(r).Global(peer.address(r))
	return must || p.GIDIndex >= 0 && !peer.GID.IsZero()
}

// fits reports whether two ends can talk to each other.
func (e *endpoint) fits(o *endpoint) error {
	if e.Link != o.Link {
		return fmt.Errorf("link layers differ: ours is %s, the peer's %q", e.Link, o.Link)
	}
	if e.GIDType != o.GIDType {
		return fmt.Errorf("GID types differ: ours is %s, the peer's %q: choose GIDs of one type with -x", e.GIDType, o.GIDType)
	}
	if _, ok := qp.MTUOf(o.MTUBytes); !ok || o.MaxReads < 0 || o.MaxDestReads < 0 {
		return fmt.Errorf("the peer's MTU of %d bytes and its %d and %d outstanding READs make no sense", o.MTUBytes, o.MaxReads, o.MaxDestReads)
	}
	if len(e.Flows) != len(o.Flows) {
		return fmt.Errorf("the peer has %d flows, we have %d", len(o.Flows), len(e.Flows))
	}
	for i := range e.Flows {
		if len(e.Flows[i]) != len(o.Flows[i]) {
			return fmt.Errorf("flow %d: the peer has %d queue pairs, we have %d", i, len(o.Flows[i]), len(e.Flows[i]))
		}
	}
	return nil
}
