package be

import (
	"fmt"
	"slices"

	"github.com/byteexpress/byteexpress/verbs"
)

// path is where a node is on its fabric.
type path struct {
	port  verbs.PortAttr
	gid   verbs.GIDEntry
	types []string // of the GIDs that it may take, best first
}

// wish says what a path should be like, if it can.
type wish struct {
	gid verbs.GID // that of the bootstrap's line; zero: it does not tell
	typ string    // of the GID: what the peer can reach; empty: any
}

// findPath asks for the port's present state and the GID to use. It is asked
// anew for each engine: both change while a node lives.
func (n *Node) findPath(w wish) (p path, err error) {
	ctx, cfg, name := n.ctx, &n.cfg, n.device
	if p.port, err = ctx.Port(cfg.Port); err != nil {
		return p, fmt.Errorf("%s: port %d: %w", name, cfg.Port, err)
	}
	if p.port.State != verbs.PortActive {
		return p, fmt.Errorf("%s: port %d is %v: bring its link up", name, cfg.Port, p.port.State)
	}
	gids, err := ctx.GIDs(cfg.Port)
	if err != nil {
		return p, fmt.Errorf("%s: port %d: GID table: %w", name, cfg.Port, err)
	}
	if cfg.GIDIndex != nil {
		i := slices.IndexFunc(gids, func(g verbs.GIDEntry) bool { return g.Index == *cfg.GIDIndex })
		if i < 0 {
			return p, fmt.Errorf("%s: port %d has no GID at index %d that this process can use: the table has %v", name, cfg.Port, *cfg.GIDIndex, gids)
		}
		p.gid, p.types = gids[i], []string{gids[i].Type.String()}
		return p, nil
	}
	ranked := verbs.RankGIDs(gids)
	for _, g := range ranked {
		if t := g.Type.String(); !slices.Contains(p.types, t) {
			p.types = append(p.types, t)
		}
	}
	ranked = w.prefer(ranked)
	switch {
	case p.port.LinkLayer == verbs.LinkInfiniBand:
		if len(ranked) > 0 {
			p.gid = ranked[0]
		}
		return p, nil
	case len(ranked) == 0:
		return p, fmt.Errorf("%s: port %d has no GID: give its network interface an address", name, cfg.Port)
	}
	p.gid, err = n.usableGID(ranked)
	return p, err
}

// checkGID refuses a GIDIndex beyond the port's table. What the entry is, and whether there
// is any, may change while a node lives.
func (c *Config) checkGID(ctx verbs.Context) error {
	if c.GIDIndex == nil {
		return nil
	}
	port, err := ctx.Port(c.Port)
	if i := *c.GIDIndex; err == nil && port.GIDs > 0 && i >= port.GIDs {
		return &ConfigError{"GIDIndex", int64(i), fmt.Sprintf("0 to %d: port %d of %s has %d GIDs", port.GIDs-1, c.Port, ctx.Info().Name, port.GIDs)}
	}
	return nil // who asks for the port next gets the error
}

// prefer puts what is wished for in front, and leaves out GIDs of another type if there
// are some of the one that is wished for.
func (w wish) prefer(ranked []verbs.GIDEntry) []verbs.GIDEntry {
	of := slices.DeleteFunc(slices.Clone(ranked), func(g verbs.GIDEntry) bool { return g.Type.String() != w.typ })
	if len(of) > 0 {
		ranked = of
	}
	slices.SortStableFunc(ranked, func(a, b verbs.GIDEntry) int {
		switch {
		case a.GID == w.gid && b.GID != w.gid:
			return -1
		case a.GID != w.gid && b.GID == w.gid:
			return 1
		}
		return 0
	})
	return ranked
}

// usableGID gives the best GID that queue pairs can be brought up with. The one that
// was good last time needs no new try.
func (n *Node) usableGID(ranked []verbs.GIDEntry) (verbs.GIDEntry, error) {
	if good := n.goodGID.Load(); good != nil && *good == ranked[0] {
		return *good, nil
	}
	g, err := verbs.UsableGID(n.ctx, n.cfg.Port, ranked)
	if err != nil {
		return g, err
	}
	n.goodGID.Store(&g)
	return g, nil
}
