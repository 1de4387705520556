package be

import (
	"fmt"

	"github.com/byteexpress/byteexpress/verbs"
)

// path is where a node is on its fabric.
type path struct {
	port verbs.PortAttr
	gid  verbs.GIDEntry
}

// findPath asks for the port's present state and the GID to use. It is asked
// anew for each engine: both change while a node lives.
func findPath(ctx verbs.Context, cfg *Config) (path, error) {
	var p path
	var err error
	if p.port, err = ctx.Port(cfg.Port); err != nil {
		return p, fmt.Errorf("%s: port %d: %w", ctx.Info().Name, cfg.Port, err)
	}
	if p.port.State != verbs.PortActive {
		return p, fmt.Errorf("%s: port %d is %v: bring its link up", ctx.Info().Name, cfg.Port, p.port.State)
	}
	gids, err := ctx.GIDs(cfg.Port)
	if err != nil {
		return p, fmt.Errorf("%s: port %d: GID table: %w", ctx.Info().Name, cfg.Port, err)
	}
	best := -1
	for i, g := range gids {
		if cfg.GIDIndex != nil {
			if g.Index == *cfg.GIDIndex {
				p.gid = g
				return p, nil
			}
			continue
		}
		if best < 0 || rank(g) > rank(gids[best]) {
			best = i
		}
	}
	switch {
	case cfg.GIDIndex != nil:
		return p, fmt.Errorf("%s: port %d has no GID at index %d that this process can use: the table has %v", ctx.Info().Name, cfg.Port, *cfg.GIDIndex, gids)
	case best >= 0:
		p.gid = gids[best]
	case p.port.LinkLayer != verbs.LinkInfiniBand:
		return p, fmt.Errorf("%s: port %d has no GID: give its network interface an address", ctx.Info().Name, cfg.Port)
	}
	return p, nil
}

// rank orders GIDs: RoCE v2 before v1, IPv4 before IPv6, link-local last.
func rank(g verbs.GIDEntry) int {
	r := 0
	if g.Type == verbs.GIDRoCEv2 {
		r += 4
	}
	if !g.GID.IsLinkLocal() {
		r += 2
	}
	if g.GID.IsIPv4() {
		r++
	}
	return r
}
