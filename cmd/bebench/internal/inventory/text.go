package inventory

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Detail says how much of a device is written for people.
type Detail int

// The details. Each has what those before it have.
const (
	Brief Detail = iota // devices, ports and GIDs
	Why                 // and their ranks with the reasons
	Full                // and limits, keys and counters
)

// WriteText writes the list for people to w.
func (d *Document) WriteText(w io.Writer, detail Detail) error {
	p := &printer{w: w}
	if len(d.Devices) == 0 {
		p.line("no RDMA device of the kernel; the simulator sim: is always there")
		if d.Error != "" {
			p.line("  %s", d.Error)
		}
	}
	for i := range d.Devices {
		p.device(&d.Devices[i], detail)
	}
	if detail == Why {
		p.choice(d)
	}
	return p.err
}

// printer remembers the first error of writing.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format+"\n", args...); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *printer) choice(d *Document) {
	c := d.Default
	s := "default: " + c.Device
	if c.Port != 0 {
		s += fmt.Sprintf(", port %d", c.Port)
	}
	if c.GID != nil {
		s += fmt.Sprintf(", GID %d", *c.GID)
	}
	p.line("%s (%s)", s, c.Why)
	p.line("another choice by -d, -i and -x is always obeyed")
}

func (p *printer) device(d *Device, detail Detail) {
	p.line("%s", d.Name)
	s := "driver " + cmp.Or(d.Driver, "none")
	if d.ABI != 0 {
		s += fmt.Sprintf(" (ABI %d)", d.ABI)
	}
	s += ", provider " + cmp.Or(d.Provider, "none")
	if d.NetDev != "" {
		s += ", on " + d.NetDev
	}
	if d.PCI != "" {
		s += ", PCI " + d.PCI
	}
	if d.NUMANode != nil {
		s += fmt.Sprintf(", NUMA node %d", *d.NUMANode)
	}
	if d.Firmware != "" {
		s += ", firmware " + d.Firmware
	}
	p.line("  %s", s)
	switch {
	case d.Error != "":
		p.line("  cannot be used: %s", d.Error)
	case d.Node == "": // not of the kernel
		p.line("  %s", d.Why)
	case detail >= Why:
		p.line("  %s", place(d.Rank, d.Why))
	}
	if detail == Full {
		p.identity(d)
	}
	for i := range d.Ports {
		p.port(&d.Ports[i], detail, d.Error == "")
	}
}

// identity is what names a device, and its limits.
func (p *printer) identity(d *Device) {
	for _, f := range []struct{ name, value string }{
		{"node", strings.TrimSpace(d.Node + " " + d.NodeNumber)}, {"node type", d.NodeType}, {"node GUID", d.NodeGUID}, {"description", d.Description},
		{"type", d.Type}, {"board", d.Board}, {"driver version", d.DriverVersion}, {"local CPUs", d.LocalCPUs},
	} {
		if f.value != "" {
			p.line("  %s %s", f.name, f.value)
		}
	}
	l := d.Limits
	if l == nil {
		return
	}
	p.line("  limits")
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, f := range []struct {
		name  string
		value any
	}{
		{"queue pairs", l.QP}, {"requests a queue", l.QPWR}, {"segments a request", l.SGE}, {"inline bytes", l.InlineBytes}, {"completion queues", l.CQ},
		{"completions a queue", l.CQE}, {"memory regions", l.MR}, {"bytes a region", l.MRBytes}, {"protection domains", l.PD},
		{"shared receive queues", l.SRQ}, {"requests a shared receive queue", l.SRQWR},
		{"READs and atomics outstanding", l.Reads}, {"READs and atomics served", l.DestReads}, {"atomics", l.Atomics}, {"atomics with CPUs", l.Global},
		{"memory windows", l.MW}, {"on demand", l.OnDemand}, {"clock in kHz", l.ClockKHz}, {"flags", l.Flags}, {"completion vectors", l.CompVectors},
		{"vendor, part, hardware version", fmt.Sprintf("%s, %d, %d", l.VendorID, l.VendorPartID, l.HWVersion)},
	} {
		if f.value != 0 && f.value != "" && f.value != uint64(0) { // not told
			fmt.Fprintf(t, "    %s\t%v\n", f.name, f.value)
		}
	}
	p.flush(t)
}

func (p *printer) flush(t *tabwriter.Writer) {
	if err := t.Flush(); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *printer) port(o *Port, detail Detail, usable bool) {
	s := fmt.Sprintf("port %d: %s, %s", o.Port, o.State, o.LinkLayer)
	if o.MTUBytes > 0 {
		s += fmt.Sprintf(", MTU %d (at most %d)", o.MTUBytes, o.MaxMTU)
	}
	if o.SpeedGbps > 0 {
		s += fmt.Sprintf(", %g Gbit/s", o.SpeedGbps)
	}
	if o.Width > 0 {
		s += fmt.Sprintf(" on %d lanes", o.Width)
		if o.Lane != "" {
			s += " of " + o.Lane
		}
	}
	if o.LID > 0 {
		s += fmt.Sprintf(", LID %d", o.LID)
	}
	if detail >= Why && usable {
		s += ", " + place(o.Rank, o.Why)
	}
	p.line("  %s", s)
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, g := range o.GIDs {
		fmt.Fprintf(t, "    GID %d\t%s\t%s", g.Index, g.GID, g.Type)
		if g.NetDev != "" || detail >= Why {
			fmt.Fprintf(t, "\t%s", g.NetDev)
		}
		if detail >= Why {
			fmt.Fprintf(t, "\t%s", place(g.Rank, g.Why))
		}
		fmt.Fprintln(t)
	}
	p.flush(t)
	if detail < Full {
		return
	}
	if o.Physical != "" {
		p.line("    physical state %s", o.Physical)
	}
	if len(o.PKeys) > 0 {
		p.line("    partition keys %s", strings.Join(o.PKeys, " "))
	}
	t = tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(o.Counters)) {
		if v := o.Counters[name]; v != 0 {
			fmt.Fprintf(t, "    %s\t%d\n", name, v)
		}
	}
	p.flush(t)
}

func place(rank int, why string) string {
	if rank == 0 {
		return "rejected: " + why
	}
	return fmt.Sprintf("rank %d: %s", rank, why)
}
