package provider

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// Candidate is a device of the kernel with its place among those that [Default]
// chooses from, and the reason for it.
type Candidate struct {
	Info
	Rank   int               // 1: the one that Default chooses; 0: rejected
	Why    string            // never empty
	Device verbs.Device      // nil if Info.Err is not
	Attr   *verbs.DeviceAttr // nil if it could not be opened
	Ports  []PortCandidate   // by number
}

// PortCandidate is a port of a candidate.
type PortCandidate struct {
	Port int
	Rank int // 1: the one that is used by default; 0: rejected
	Why  string
	Attr verbs.PortAttr
	GIDs []GIDCandidate // by index
}

// GIDCandidate is an entry of a port's GID table.
type GIDCandidate struct {
	verbs.GIDEntry
	Rank int // 1: the one that is used by default; 0: rejected
	Why  string
}

// Rank opens every device of the kernel, and orders them: those first that can be
// used and have a port that can, of these hardware before software, then the faster
// port, then by name. Rejected ones come last, by name.
func Rank() ([]Candidate, error) { return RankOf(&system) }

// RankOf is Rank on a system that may be another than the one that runs.
func RankOf(s *uverbs.System) ([]Candidate, error) {
	devs, err := devicesOf(s)
	var all []Candidate
	for i := range devs {
		all = append(all, consider(s, &devs[i]))
	}
	slices.SortStableFunc(all, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.class(), b.class()), cmp.Compare(b.speed(), a.speed()))
	})
	for i := range all {
		if all[i].class() < rejected {
			all[i].Rank = i + 1
		}
	}
	return all, err
}

// Classes of devices, best first.
const (
	hardware = iota
	software
	rejected
)

func (c *Candidate) class() int {
	switch {
	case c.Err != nil || len(c.Ports) == 0 || c.best() == nil:
		return rejected
	case c.NetDev != "":
		return software
	}
	return hardware
}

// best is the port that is used by default, nil if there is none.
func (c *Candidate) best() *PortCandidate {
	for i := range c.Ports {
		if c.Ports[i].Rank == 1 {
			return &c.Ports[i]
		}
	}
	return nil
}

func (c *Candidate) speed() float64 {
	if p := c.best(); p != nil {
		return p.Attr.SpeedGbps
	}
	return 0
}

// Judge opens a device that is not of the kernel, such as a simulated one, and
// gives its ports and their places.
func Judge(d verbs.Device) Candidate {
	c := consider(&uverbs.System{}, &kernelDevice{info: Info{DeviceInfo: d.Info()}, device: d})
	if c.Err == nil {
		c.Why = "simulated: chosen where no device of the kernel can be used"
		if d.Info().Name != simulatedDefault {
			c.Why = "simulated: used only where it is named"
		}
	}
	return c
}

// consider opens a device and judges its ports.
func consider(s *uverbs.System, d *kernelDevice) Candidate {
	c := Candidate{Info: d.info, Device: d.device}
	if c.Err == nil {
		c.Err = c.ask(s)
	}
	switch {
	case c.Err != nil:
		c.Device, c.Why = nil, c.Err.Error()
	case c.best() == nil:
		c.Why = "no port can be used"
		if len(c.Ports) > 0 {
			c.Why = fmt.Sprintf("no port can be used: port %d is %s", c.Ports[0].Port, c.Ports[0].Why)
		}
	default:
		kind := "hardware"
		if c.class() == software {
			kind = "software on " + c.NetDev
		}
		c.Why = fmt.Sprintf("%s, port %d is %s", kind, c.best().Port, c.best().Why)
	}
	return c
}

func (c *Candidate) ask(s *uverbs.System) (err error) {
	ctx, err := c.Device.Open()
	if err != nil {
		return err
	}
	defer func() {
		if e := ctx.Close(); err == nil {
			err = e
		}
	}()
	attr, err := ctx.Attr()
	if err != nil {
		return err
	}
	c.Attr = &attr
	ports, err := verbs.RankPorts(ctx)
	if err != nil {
		return err
	}
	for i, p := range ports {
		pc := PortCandidate{Port: p.Port, Why: p.Why, Attr: p.Attr}
		if p.Usable {
			pc.Rank = i + 1
		}
		for rank, g := range p.GIDs {
			pc.GIDs = append(pc.GIDs, GIDCandidate{g, rank + 1, g.Merit()})
		}
		pc.GIDs = append(pc.GIDs, hidden(s, c.Name, p.Port, pc.GIDs)...)
		slices.SortFunc(pc.GIDs, func(a, b GIDCandidate) int { return a.Index - b.Index })
		c.Ports = append(c.Ports, pc)
	}
	slices.SortFunc(c.Ports, func(a, b PortCandidate) int { return a.Port - b.Port })
	return nil
}

// hidden gives the entries of a port that sysfs has and the device did not give: they
// are of another network namespace.
func hidden(s *uverbs.System, device string, port int, have []GIDCandidate) (out []GIDCandidate) {
	seen, _ := s.GIDs(device, port) // none for what is not of the kernel
	for _, g := range seen {
		if slices.ContainsFunc(have, func(h GIDCandidate) bool { return h.Index == g.Index }) {
			continue
		}
		why := cmp.Or(g.Hidden, "not in this network namespace")
		if g.Index > verbs.MaxGIDIndex {
			why = fmt.Sprintf("its index is above %d, and requests have 8 bits for it", verbs.MaxGIDIndex)
		}
		out = append(out, GIDCandidate{g.GIDEntry, 0, why})
	}
	return out
}
