package verbs

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/byteexpress/byteexpress/qp"
)

// maxGIDTries bounds how many GIDs UsableGID tries.
const maxGIDTries = 3

// UsableGID gives the first of a port's GIDs that a queue pair can be brought up with,
// best first as [RankGIDs] gives them. The table may list GIDs of another network
// namespace, or of an interface that is gone, and not tell: only the step to RTR does,
// with ENODEV. It is tried with a queue pair that is connected to nothing, before the
// peer is told of the GID; after 3 GIDs it gives up with an error that names them.
// Another failure is not the GID's, and left to whoever meets it.
func UsableGID(ctx Context, port int, ranked []GIDEntry) (_ GIDEntry, err error) {
	fail := func(err error) (GIDEntry, error) {
		return GIDEntry{}, &OpError{Op: "choose a GID", Device: ctx.Info().Name, Object: fmt.Sprintf("of port %d", port), Err: err,
			Remedy: "give an interface of this network namespace an address, or choose a GID by its index"}
	}
	if len(ranked) == 0 {
		return fail(errors.New("the table is empty"))
	}
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	pd, err := ctx.AllocPD()
	if err != nil {
		return GIDEntry{}, err
	}
	defer func() { keep(pd.Close()) }()
	q, err := ctx.CreateCQ(CQConfig{Entries: 1})
	if err != nil {
		return GIDEntry{}, err
	}
	defer func() { keep(q.Close()) }()
	var tried []string
	var last error
	for _, g := range ranked[:min(len(ranked), maxGIDTries)] {
		err := tryGID(pd, QPConfig{SendCQ: q, RecvCQ: q, Caps: qp.Caps{SendWR: 1, RecvWR: 1, SendSGE: 1, RecvSGE: 1}}, port, g)
		if !errors.Is(err, syscall.ENODEV) {
			return g, nil
		}
		tried, last = append(tried, fmt.Sprintf("%d (%v)", g.Index, g.GID)), err
	}
	return fail(fmt.Errorf("a queue pair takes none of index %s: %w", strings.Join(tried, ", "), last))
}

// tryGID takes a queue pair to RTR, towards itself.
func tryGID(pd PD, cfg QPConfig, port int, g GIDEntry) error {
	q, err := pd.CreateQP(cfg)
	if err != nil {
		return err
	}
	defer q.Close()
	p := qp.Path{Port: uint8(port), SGIDIndex: uint8(g.Index), DestNum: q.Num(), DGID: g.GID, Global: true, MTU: qp.MTU256}
	if err := p.ToInit(q); err != nil {
		return err
	}
	return p.ToRTR(q)
}
