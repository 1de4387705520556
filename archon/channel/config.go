package channel

import (
	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/pkg/errors"
)

// Recovery tunes time-outs, retries, hedges, ejection, pings and fallback; see
// core.Config. The zero value takes every default.
type Recovery = core.Config

// Config sets a Channel up. It is not changed after use.
type Config struct {
	// Service is the name that connections ask for and errors give, 1 to 200 bytes.
	Service string
	// Resolver says where the replicas are.
	Resolver Resolver
	// RDMA is the transport that is used where it works; nil: none. See Device.
	RDMA archon.Transport
	// TCP is the transport that is used else; nil: archon.TCP{}.
	TCP archon.Transport
	// NoFallback forbids TCP: a replica that RDMA does not reach is not reached.
	NoFallback bool
	// Idempotent are the methods whose calls may be repeated though they may have run.
	Idempotent []archon.Method
	// Locality gives the distance of a replica, 0 the nearest: farther ones are asked
	// only when no nearer one is there. Nil: all are equally near. It is called with locks
	// held: it must not block, nor make calls of the channel.
	Locality func(Endpoint) int
	Recovery Recovery
	// Seed is of what the channel draws, as replicas and pauses, so that a test can be
	// repeated; 0: it is drawn too.
	Seed uint64
	// Client is of each connection. Its interceptors stand around streams and one-way
	// calls alone.
	Client archon.ClientConfig
}

func (c Config) withDefaults() (Config, error) {
	if len(c.Service) == 0 || len(c.Service) > 200 {
		return c, errors.Errorf("channel: service name of %d bytes, must be 1 to 200", len(c.Service))
	}
	if c.Resolver == nil {
		return c, errors.Errorf("channel: service %q has no Resolver: set Config.Resolver, Static for a fixed list", c.Service)
	}
	if c.NoFallback && c.RDMA == nil {
		return c, errors.Errorf("channel: service %q has NoFallback and no RDMA transport: nothing is left", c.Service)
	}
	if c.TCP == nil {
		c.TCP = archon.TCP{}
	}
	if c.Locality == nil {
		c.Locality = func(Endpoint) int { return 0 }
	}
	var err error
	c.Recovery, err = c.Recovery.WithDefaults()
	return c, errors.WithMessage(err, "channel")
}

// paths is the mask of transports to a replica.
func (c *Config) paths(e *Endpoint) (have core.Path) {
	if c.RDMA != nil && e.RDMA != "" {
		have |= core.RDMA
	}
	if !c.NoFallback && e.TCP != "" {
		have |= core.TCP
	}
	return have
}
