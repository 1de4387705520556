package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Facts is what two hosts tell each other to be compared.
type Facts struct {
	Version string      `json:"version"` // of this program
	Host    report.Host `json:"host"`
	Device  string      `json:"device,omitempty"` // the best; the rest is of its best port
	Link    string      `json:"link_layer,omitempty"`
	MTU     int         `json:"mtu_bytes,omitempty"`
	Types   []string    `json:"gid_types,omitempty"`
	GID     string      `json:"gid,omitempty"` // the best
	GIDType string      `json:"gid_type,omitempty"`
	Local   bool        `json:"link_local,omitempty"` // the best GID reaches hosts on the same link only
}

// FactsOf are those of the best of the devices.
func FactsOf(version string, devs []provider.Candidate) Facts {
	f := Facts{Version: version, Host: report.ThisHost()}
	for _, c := range devs {
		for _, p := range c.Ports {
			if c.Device == nil || p.Rank != 1 || f.Device != "" {
				continue
			}
			f.Device, f.Link, f.MTU = c.Name, p.Attr.LinkLayer.String(), p.Attr.ActiveMTU.Bytes()
			for _, g := range p.GIDs {
				if t := g.Type.String(); g.Rank > 0 && !slices.Contains(f.Types, t) {
					f.Types = append(f.Types, t)
				}
				if g.Rank == 1 {
					f.GID, f.GIDType, f.Local = g.GID.String(), g.Type.String(), g.GID.IsLinkLocal() && g.Type != verbs.GIDInfiniBand
				}
			}
		}
	}
	slices.Sort(f.Types)
	return f
}

// command is what both ends say in their hello.
const command = "doctor"

// Server answers peers with this host's facts.
func Server(mine Facts, limit time.Duration) *control.Server {
	return &control.Server{Hello: control.NewHello(command, nil), Limit: limit, Test: func(_ context.Context, c *control.Conn) error {
		if err := c.Recv("facts", &Facts{}); err != nil {
			return err
		}
		return c.Send("facts", mine)
	}}
}

// Compare asks the doctor of another host, "host:port", and compares.
func (r *Report) Compare(ctx context.Context, addr string, limit time.Duration, mine Facts) {
	r.Peer, _, _ = net.SplitHostPort(addr)
	var theirs Facts
	began := time.Now()
	c, err := control.Dial(ctx, addr, limit)
	if err != nil {
		found, remedy := unreachable(err, addr)
		r.on("tcp", addr).bad(Error, found, remedy)
		return
	}
	defer c.Close()
	r.on("tcp", addr).ok("connected in %v", time.Since(began).Round(10*time.Microsecond))
	if err = c.Greet(control.NewHello(command, nil)); err == nil {
		if err = c.Send("facts", mine); err == nil {
			err = c.Recv("facts", &theirs)
		}
	}
	if err != nil {
		remedy := "start there: bebench doctor --serve"
		if errors.Is(err, control.ErrNotBebench) {
			remedy = "choose another port with -p, at both ends; then " + remedy
		}
		r.on("peer", addr).bad(Error, err.Error(), remedy)
		return
	}
	theirs.clean()
	r.compare(mine, theirs)
}

// maxTypes is how many types of GIDs a peer can have: IB, RoCE v1 and RoCE v2.
const maxTypes = 3

// maxFact is how many characters of each text of a peer's facts are shown.
const maxFact = 80

// clean takes out of a peer's facts what would not stay on its line.
func (f *Facts) clean() {
	line := func(s string) string {
		if r := []rune(s); len(r) > maxFact {
			s = string(r[:maxFact]) + "..."
		}
		return strings.ReplaceAll(control.Printable(s), "\n", " ")
	}
	for _, s := range []*string{&f.Version, &f.Device, &f.Link, &f.GID, &f.GIDType} {
		*s = line(*s)
	}
	for i, s := range f.Types {
		f.Types[i] = line(s)
	}
	f.Types = f.Types[:min(len(f.Types), maxTypes)]
}

// unreachable puts into words why there is no connection.
func unreachable(err error, addr string) (found, remedy string) {
	_, port, _ := net.SplitHostPort(addr)
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return "the name is not known: " + dns.Error(), "use the host's IP address, or mend /etc/hosts or DNS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there on port " + port, "start there: bebench doctor --serve"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no way to the host", "look at `ip route get`, and whether the host is up"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "no answer: a firewall may drop packets for port " + port, "let TCP port " + port + " in there, or choose another with -p at both ends"
	}
	return err.Error(), "see that the host is up and that `bebench doctor --serve` runs there"
}

// compare holds two hosts against each other.
func (r *Report) compare(mine, theirs Facts) {
	a := r.on("peer-version", "")
	if mine.Version == theirs.Version {
		a.ok("both have bebench %s", mine.Version)
	} else {
		a.bad(Warning, fmt.Sprintf("here %s, there %s", mine.Version, theirs.Version), "install the same bebench on both hosts")
	}
	a = r.on("peer-device", "")
	switch {
	case mine.Device == "":
		a.bad(Error, "this host has no device that can be used", "mend what is said above")
		return
	case theirs.Device == "":
		a.bad(Error, "the peer has no device that can be used", "run bebench doctor there")
		return
	case mine.Link != theirs.Link:
		a.bad(Error, fmt.Sprintf("here %s is %s, there %s is %s", mine.Device, mine.Link, theirs.Device, theirs.Link), "choose devices of one kind with -d")
		return
	}
	a.ok("here %s, there %s, both %s", mine.Device, theirs.Device, mine.Link)
	a = r.on("peer-mtu", "")
	switch _, ok := qp.MTUOf(theirs.MTU); {
	case !ok:
		a.bad(Error, fmt.Sprintf("the peer says %d, which is no MTU", theirs.MTU), "install the same bebench on both hosts")
	case mine.MTU == theirs.MTU:
		a.ok("%d at both ends", mine.MTU)
	default:
		a.bad(Hint, fmt.Sprintf("here %d, there %d: connections use %d", mine.MTU, theirs.MTU, min(mine.MTU, theirs.MTU)),
			"give both network interfaces, and the switches between, the same MTU")
	}
	r.compareGIDs(mine, theirs)
}

func (r *Report) compareGIDs(mine, theirs Facts) {
	a := r.on("peer-gid", "")
	common := slices.DeleteFunc(slices.Clone(mine.Types), func(t string) bool { return !slices.Contains(theirs.Types, t) })
	switch {
	case len(mine.Types) == 0 && len(theirs.Types) == 0: // InfiniBand by LID
	case len(common) == 0:
		a.bad(Error, fmt.Sprintf("no type in common: here %s, there %s; packets would not arrive", orNone(mine.Types), orNone(theirs.Types)),
			"set both NICs to the same RoCE mode, and give both network interfaces an address")
	case mine.GIDType != theirs.GIDType:
		a.bad(Warning, fmt.Sprintf("here %s is taken by default, there %s; connections are refused", mine.GIDType, theirs.GIDType),
			"choose GIDs of type "+common[0]+" with -x at both ends; bebench devices lists them")
	case mine.Local || theirs.Local:
		a.bad(Warning, fmt.Sprintf("here %s, there %s: a link-local address reaches hosts on the same link only", mine.GID, theirs.GID),
			"give both network interfaces an IPv4 address of one network")
	default:
		a.ok("%s at both ends: here %s, there %s", mine.GIDType, mine.GID, theirs.GID)
	}
}

func orNone(types []string) string {
	if len(types) == 0 {
		return "none"
	}
	return strings.Join(types, " and ")
}
