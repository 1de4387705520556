package be

import (
	"fmt"
	"slices"

	"github.com/byteexpress/byteexpress/verbs"
)

// path is where a node is on its fabric.
type path struct {
	port verbs.PortAttr
	gid  verbs.GIDEntry
}

// findPath asks for the port's present state and the GID to use. It is asked
// anew for each engine: both change while a node lives. wanted is the GID that the
// bootstrap's line goes by, zero if it does not tell.
func findPath(ctx verbs.Context, cfg *Config, wanted verbs.GID) (path, error) {
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
	if cfg.GIDIndex != nil {
		i := slices.IndexFunc(gids, func(g verbs.GIDEntry) bool { return g.Index == *cfg.GIDIndex })
		if i < 0 {
			return p, fmt.Errorf("%s: port %d has no GID at index %d that this process can use: the table has %v", ctx.Info().Name, cfg.Port, *cfg.GIDIndex, gids)
		}
		p.gid = gids[i]
		return p, nil
	}
	ranked := verbs.RankGIDs(gids)
	if i := slices.IndexFunc(ranked, func(g verbs.GIDEntry) bool { return g.GID == wanted }); i > 0 {
		ranked = ranked[i:]
	}
	if len(ranked) > 0 {
		p.gid = ranked[0]
	} else if p.port.LinkLayer != verbs.LinkInfiniBand {
		return p, fmt.Errorf("%s: port %d has no GID: give its network interface an address", ctx.Info().Name, cfg.Port)
	}
	return p, nil
}
