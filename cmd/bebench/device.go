package main

import (
	"strings"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/verbtest"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm"
	"github.com/byteexpress/byteexpress/verbs"
)

// simPrefix begins the names of simulated devices, which live in one process.
const simPrefix = "sim:"

// chosen is the device of a command; the zero value is none.
type chosen struct {
	dev  verbs.Device
	name string
	note string // why it was chosen, if the user did not
}

// sim reports a device that only this process can reach.
func (c *chosen) sim() bool { return strings.HasPrefix(c.name, simPrefix) }

// again opens the device for one more end in this process.
func (c *chosen) again() (verbs.Device, error) {
	if c.dev == nil {
		return nil, nil // none is needed
	}
	return provider.Open(c.name)
}

// choose opens the named device, or without a name the default one.
func choose(name string) (*chosen, error) {
	if name != "" {
		dev, err := provider.Open(name)
		if errors.Is(err, verbs.ErrNotFound) {
			return nil, errors.WithMessage(err, "-d "+name)
		}
		return &chosen{dev: dev, name: name}, err
	}
	dev, note, err := provider.Default()
	if err != nil {
		return nil, err
	}
	c := &chosen{dev: dev, name: dev.Info().Name, note: note}
	if strings.HasPrefix(c.name, simPrefix) {
		c.name = simPrefix // each end a NIC of its own
	}
	return c, nil
}

// describe opens the device, checks what the flags choose of it, and says what that
// is.
func (c *chosen) describe(f *deviceFlags) (*report.Device, error) {
	if f.cm {
		if err := c.checkCM(); err != nil {
			return nil, errors.WithMessage(err, "-R")
		}
	}
	p := verbtest.Params{Port: f.port, GIDIndex: f.gid, MTUBytes: f.mtu}
	d, err := verbtest.Describe(c.dev, &p)
	if f.cm {
		d.GID = "" // the server's address chooses it
	}
	return &d, err
}

// gidLine says for people which GID is ours.
func (f *deviceFlags) gidLine(d *report.Device) string {
	if f.cm {
		return "that of the address, by rdma_cm"
	}
	return d.GID
}

// checkCM tells whether the device's connections can be made by the connection manager
// of this kernel.
func (c *chosen) checkCM() error {
	if c.sim() {
		return &verbs.UnsupportedError{Feature: "rdma_cm", Missing: c.name + ", a simulator inside one process"}
	}
	ch, err := rdmacm.Open()
	if err != nil {
		return err
	}
	return ch.Close()
}

// nodeConfig is how ByteExpress nodes use the device.
func (f *deviceFlags) nodeConfig() be.Config {
	mtu, _ := qp.MTUOf(f.mtu)
	cfg := be.Config{Port: f.port, MTU: mtu, AckTimeout: qp.AckTimeout(f.ack), TrafficClass: uint8(f.tclass), ServiceLevel: uint8(f.sl),
		RetryCount: f.retry, RNRTimer: qp.RNRTimer(f.rnr), HopLimit: f.hops, FlowLabel: uint32(f.label)}
	if f.gid >= 0 {
		cfg.GIDIndex = &f.gid
	}
	return cfg
}

// mode is the role that a command plays.
type mode int

const (
	local mode = iota
	server
	client
)

// role decides it: a host makes a client; without one the command is the server,
// or both ends on a simulator or with --local.
func (c *chosen) role(hosts []string, p *peerFlags) (mode, error) {
	switch {
	case len(hosts) > 0 && c.sim():
		return 0, exit.Usagef("%s is a simulator inside one process: %s cannot be reached through it; "+
			"leave the host out to run both ends here, or choose a real device with -d", c.name, strings.Join(hosts, " "))
	case len(hosts) > 0:
		return client, nil
	case (p.local || c.sim()) && p.once:
		return 0, exit.Usagef("-1 is for a server, and both ends are in this process: leave it out, or choose a real device with -d")
	case p.local || c.sim():
		return local, nil
	}
	return server, nil
}
