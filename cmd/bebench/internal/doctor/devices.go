package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/verbs"
)

// devices looks at the list as a whole, and gives the devices to look at.
func (r *Report) devices(h *Host, all []provider.Candidate, err error, name string) []provider.Candidate {
	a := r.on("device", name)
	if err != nil {
		found, remedy := split(err, "mount sysfs")
		a.bad(Error, found, remedy)
		return nil
	}
	if name != "" {
		for i := range all {
			if all[i].Name == name {
				return all[i : i+1]
			}
		}
		a.bad(Error, "there is no such RDMA device", "bebench devices lists those there are")
		return nil
	}
	usable := 0
	for _, c := range all {
		if c.Rank > 0 {
			usable++
		}
	}
	switch {
	case len(all) == 0 && h.Verbs.NetNSMode() == "exclusive":
		a.bad(Error, "this machine has no RDMA device, or all are of other network namespaces", "rdma dev set DEVICE netns PID, or rdma system set netns shared")
	case len(all) == 0:
		a.bad(Error, "this machine has no RDMA device", "load the NIC's driver; or, for software RDMA: rdma link add rxe0 type rxe netdev eth0")
	case usable == 0:
		a.bad(Error, fmt.Sprintf("none of %d devices can be used", len(all)), "see below, at each device")
	default:
		a.ok("%d of %d can be used; %s is taken by default", usable, len(all), all[0].Name)
	}
	return all
}

// split takes the remedy of an error apart from what was found.
func split(err error, remedy string) (found, mend string) {
	var op *verbs.OpError
	if errors.As(err, &op) && op.Remedy != "" {
		return strings.TrimSuffix(err.Error(), ": "+op.Remedy), op.Remedy
	}
	return err.Error(), remedy
}

// device looks at one device and its ports. One that was named must be usable; others
// may be left out.
func (r *Report) device(h *Host, c *provider.Candidate, named bool) {
	if c.Err != nil {
		check, severity := "open", Error
		switch {
		case errors.Is(c.Err, verbs.ErrUnsupported):
			check, severity = "provider", Warning
		case errors.Is(c.Err, fs.ErrNotExist), errors.Is(c.Err, syscall.ENOENT):
			check = "node"
		case errors.Is(c.Err, fs.ErrPermission):
			check = "permission"
		}
		switch {
		case named:
			severity = Error
		case h.container() != "" && (check == "node" || check == "permission"):
			severity = Hint // devices that a container was not given are as they should be
		}
		found, remedy := split(c.Err, "see the kernel's log: dmesg")
		r.on(check, c.Name).bad(severity, found, remedy)
		return
	}
	r.on("node", c.Name).ok("%s opens: driver %s, ABI version %d, provider %s", c.Kernel.Path, c.Driver, c.ABI, c.Provider)
	if c.Provider == "rxe" {
		r.oldRXE(h, c.Name)
	}
	r.iommu(h, c)
	r.numa(h, c)
	active := false
	for i := range c.Ports {
		active = active || c.Ports[i].Attr.State == verbs.PortActive
	}
	for i := range c.Ports {
		r.port(h, c, &c.Ports[i], active)
	}
}

// oldRXE warns of the software device of kernels before 6.
func (r *Report) oldRXE(h *Host, name string) {
	if strings.HasPrefix(h.Kernel, "5.") {
		r.on("rxe", name).bad(Warning, "the rxe of kernel "+h.Kernel+" loses completions and can lock up", "use kernel 6.1 or later for software RDMA")
	}
}

func (r *Report) port(h *Host, c *provider.Candidate, p *provider.PortCandidate, other bool) {
	subject := fmt.Sprintf("%s port %d", c.Name, p.Port)
	a := r.on("port", subject)
	netdev := interfaceOf(c, p)
	if p.Attr.State != verbs.PortActive {
		s := Error
		if other {
			s = Hint
		}
		remedy := "plug its cable in, and bring its network interface up"
		switch {
		case netdev != "":
			remedy = "ip link set " + netdev + " up, and see that its cable is plugged in"
		case p.Attr.LinkLayer == verbs.LinkInfiniBand:
			remedy = "start a subnet manager on the fabric (opensm), and see that the cable is plugged in"
		}
		a.bad(s, fmt.Sprintf("%v, not ACTIVE", p.Attr.State), remedy)
		return
	}
	a.ok("ACTIVE, %v, %g Gbit/s, MTU %d", p.Attr.LinkLayer, p.Attr.SpeedGbps, p.Attr.ActiveMTU.Bytes())
	r.gids(subject, netdev, p)
	if isEthernet(p) {
		r.mtu(h, subject, netdev, p)
		r.qos(h, c, p, subject, netdev)
	}
	r.counters(h, c, p, subject)
}

// interfaceOf is the port's network interface, if it is known.
func interfaceOf(c *provider.Candidate, p *provider.PortCandidate) string {
	for _, g := range p.GIDs {
		if g.Rank == 1 && g.NetDev != "" {
			return g.NetDev
		}
	}
	for _, g := range p.GIDs {
		if g.NetDev != "" {
			return g.NetDev
		}
	}
	return c.NetDev
}

// gids looks whether connections can be made from the port.
func (r *Report) gids(subject, netdev string, p *provider.PortCandidate) {
	a := r.on("gid", subject)
	var best *provider.GIDCandidate
	hidden := 0
	for i, g := range p.GIDs {
		switch g.Rank {
		case 0:
			hidden++
		case 1:
			best = &p.GIDs[i]
		}
	}
	others := ""
	if hidden > 0 {
		others = fmt.Sprintf("; %d more are of other network namespaces", hidden)
	}
	address := fmt.Sprintf("ip addr add ADDRESS/24 dev %s", cmp.Or(netdev, "INTERFACE"))
	switch {
	case !isEthernet(p) && (best != nil || p.Attr.LID != 0):
		a.ok("LID %d%s", p.Attr.LID, others)
	case !isEthernet(p):
		a.bad(Error, "no LID and no GID", "start a subnet manager on the fabric (opensm)")
	case best == nil:
		a.bad(Error, "the GID table has nothing for this network namespace"+others, address)
	case best.Type != verbs.GIDRoCEv2:
		a.bad(Warning, fmt.Sprintf("no RoCE v2 GID, the best is %v of %v: no router forwards it, and peers that have RoCE v2 only do not answer%s", best.Type, best.GID, others),
			"set the NIC's RoCE mode to v2 (cma_roce_mode -d DEVICE -p 1 -m 2, or the firmware's setting), and "+address)
	case best.GID.IsLinkLocal():
		a.bad(Warning, fmt.Sprintf("the best GID, %d, is link-local (%v): only hosts on the same link are reached%s", best.Index, best.GID, others), address)
	default:
		a.ok("%d is %v, %s%s", best.Index, best.GID, best.Why, others)
	}
}

// roceHeaders is what RoCE v2 needs of an Ethernet payload besides the RDMA MTU, at
// most: IPv6, UDP, BTH, extended headers, ICRC (iboe_get_mtu of rdma/ib_addr.h).
const roceHeaders = 40 + 8 + 12 + 4 + 28 + 4

// mtu compares the port's MTU with that of the network interface.
func (r *Report) mtu(h *Host, subject, netdev string, p *provider.PortCandidate) {
	if netdev == "" {
		return
	}
	n, ok := h.number("sys/class/net", netdev, "mtu")
	if !ok {
		return
	}
	a := r.on("mtu", subject)
	active, most := p.Attr.ActiveMTU.Bytes(), p.Attr.MaxMTU.Bytes()
	switch {
	case n < active+roceHeaders:
		a.bad(Warning, fmt.Sprintf("RDMA packets of %d bytes do not fit into %s, whose MTU is %d", active, netdev, n),
			fmt.Sprintf("ip link set %s mtu %d, at both ends and on all switches between them; or use -m", netdev, active+roceHeaders))
	case active < most:
		a.bad(Hint, fmt.Sprintf("%d, and the port could %d: %s has MTU %d", active, most, netdev, n),
			fmt.Sprintf("ip link set %s mtu %d, at both ends and on all switches between them", netdev, max(most+roceHeaders, 4200)))
	default:
		a.ok("%d, and %s has %d", active, netdev, n)
	}
}
