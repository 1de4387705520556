package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/rpcjob"
)

// rpcRun is one run of bebench rpc.
type rpcRun struct {
	f    *rpcFlags
	e    *env
	o    *output
	dev  *chosen
	ends twoEnds
	cmp  *report.Comparison
	over []string // names of what is measured: transports, or the channel

	ch    *channel.Channel // to replicas; nil: there are none
	state channel.Stats    // of it, at the end
}

// rpcThere is the server's message of the step "rpc": its addresses by transport.
type rpcThere struct {
	Addrs map[string]string `json:"addrs"`
}

func (r *rpcRun) head() {
	_ = report.Rule(r.o.text)
	what := "Calls"
	if r.f.stream {
		what = "Messages of streams"
	}
	r.o.printf(" %s of archon on %d CPUs; rounds: %d", what, runtime.GOMAXPROCS(0), r.f.rounds)
	if r.f.calls == 0 {
		r.o.printf(" of %v a measurement", time.Duration(r.f.duration))
	}
	r.o.printf(".\n")
	if d := r.o.doc.Device; d != nil {
		r.o.printf(" be:  ByteExpress on %s (%s)\n", d.Name, d.Provider)
		if r.dev.sim() {
			r.o.printf("      a simulated NIC in this process: no RDMA hardware is measured\n")
		}
		if slices.Contains(r.over, "be") {
			r.o.doc.Args["be-gomaxprocs"] = r.procs("be")
			r.o.printf("      with GOMAXPROCS %d\n", r.procs("be"))
		}
	}
	r.o.printf(" CPU time and allocations are this process's: both ends' if they share it.\n")
	_ = report.Rule(r.o.text)
}

// serve is the server's end.
func (r *rpcRun) serve(ctx context.Context, c *control.Conn) (err error) {
	s, err := r.startServer(ctx, c.LocalHost())
	if err != nil {
		c.Fail(err)
		return err
	}
	defer func() {
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
	}()
	if err := c.Send("rpc", rpcThere{s.Addrs}); err != nil {
		return err
	}
	session := c.Begin(ctx, func(json.RawMessage) error { return nil })
	defer func() { session.End(err) }()
	if err := session.Finished(nil); err != nil {
		return err
	}
	return session.Conclude(func() any { return "" }, nil)
}

// rpcServer is a server on all transports.
type rpcServer struct {
	*rpcjob.Server
	transports []func() error // end them
	once       sync.Once
	err        error
}

// close ends the server, once; any goroutine may call it.
func (s *rpcServer) close() error {
	s.once.Do(func() {
		if s.Server != nil {
			s.err = s.Server.Close()
		}
		for _, end := range s.transports {
			if err := end(); s.err == nil {
				s.err = err
			}
		}
	})
	return s.err
}

func (r *rpcRun) startServer(ctx context.Context, host string) (*rpcServer, error) {
	s, over := &rpcServer{}, map[string]archon.Transport{}
	for _, name := range r.f.names() {
		t, end, err := r.open(name)()
		if err != nil {
			_ = s.close()
			return nil, errors.WithMessagef(err, "rpc over %s", name)
		}
		over[name], s.transports = t, append(s.transports, end)
	}
	var err error
	if s.Server, err = rpcjob.Serve(ctx, host, over); err != nil {
		_ = s.close()
		return nil, errors.WithMessage(err, "rpc")
	}
	return s, nil
}

// rpcClient is a client over one transport.
type rpcClient struct {
	*rpcjob.Client
	closeTransport func() error
}

func (c *rpcClient) close() error {
	err := c.Client.Close()
	if closeErr := c.closeTransport(); err == nil {
		err = closeErr
	}
	return err
}

func (r *rpcRun) dial(ctx context.Context, name, addr string) (*rpcClient, error) {
	t, closeTransport, err := r.open(name)()
	if err != nil {
		return nil, err
	}
	c, err := rpcjob.Dial(ctx, t, addr)
	if err != nil {
		_ = closeTransport()
		return nil, errors.WithMessagef(err, "rpc over %s", name)
	}
	return &rpcClient{c, closeTransport}, nil
}

// measure is the client's end.
func (r *rpcRun) measure(ctx context.Context, c *control.Conn) (err error) {
	var there rpcThere
	if err := c.Recv("rpc", &there); err != nil {
		return err
	}
	clients := map[string]*rpcjob.Client{}
	session := c.Begin(ctx, func(json.RawMessage) error { return nil })
	defer func() { session.End(err) }()
	for _, name := range r.f.names() {
		client, err := r.dial(ctx, name, there.Addrs[name])
		if err != nil {
			return session.Cause(err)
		}
		defer func() {
			if closeErr := client.close(); err == nil {
				err = closeErr
			}
		}()
		clients[name] = client.Client
		defer context.AfterFunc(r.e.soft, client.Stop)()
	}
	if err := r.rounds(session.Context(), clients); err != nil {
		return session.Cause(err)
	}
	if err := session.Finished(nil); err != nil {
		return err
	}
	return session.Conclude(func() any { return "" }, nil)
}

// rounds makes all measurements: what is compared is next to each other.
func (r *rpcRun) rounds(ctx context.Context, clients map[string]*rpcjob.Client) error {
	total := int64(r.f.rounds * len(r.f.bytes) * len(r.f.outstanding) * (len(clients) + len(r.f.programs)))
	done := int64(0)
	note := func(row report.Row) {
		r.cmp.Add(row)
		done++
		r.o.progress("measurements", 0, done, total)
	}
	for range r.f.rounds {
		for _, size := range r.f.bytes {
			for _, outstanding := range r.f.outstanding {
				for _, name := range r.over {
					before := r.counted()
					usual := runtime.GOMAXPROCS(r.procs(name))
					s, err := clients[name].Measure(ctx, name, r.f.params(size, outstanding))
					runtime.GOMAXPROCS(usual)
					if err != nil {
						return errors.WithMessagef(err, "%d bytes, %d outstanding, over %s", size, outstanding, name)
					}
					row := s.Row()
					row.Counters = r.since(before)
					note(row)
					if s.Stopped {
						return control.ErrInterrupted
					}
				}
				for i := range r.f.programs {
					row, err := r.f.programs[i].echo(r.e, size, outstanding, time.Duration(r.f.duration))
					if err != nil {
						return err
					}
					row.Name, row.Op, row.SizeBytes, row.Outstanding = r.f.programs[i].name, rpcjob.OpEcho, size, outstanding
					note(*row)
				}
			}
		}
	}
	return nil
}

// procs is the GOMAXPROCS of measurements over a transport: by default the usual number,
// and for ByteExpress one more for each worker here, as package be advises where callers
// always have work. Then a worker whose thread the kernel took the core from is not one of
// all that there are.
func (r *rpcRun) procs(name string) int {
	n := runtime.GOMAXPROCS(0)
	switch {
	case name != "be" || os.Getenv("GOMAXPROCS") != "":
		return n
	case r.o.doc.Args["local"] == true:
		return n + 2
	}
	return n + 1
}

// write writes the results; err is how the run ended.
func (r *rpcRun) write(err error) error {
	r.o.clearBar()
	r.o.doc.Ratios = r.cmp.Ratios()
	for _, row := range r.cmp.Rows() {
		r.o.doc.Rows = append(r.o.doc.Rows, row)
		r.o.doc.Interrupted = r.o.doc.Interrupted || row.Interrupted
		if row.Name == r.over[0] {
			if missed := r.o.flags.limits.missed(&row); missed != nil {
				r.o.missed = append(r.o.missed, fmt.Errorf("%d outstanding: %w", row.Outstanding, missed))
			}
		}
		if r.f.output.stream {
			if streamErr := r.o.doc.Stream(r.o.stdout, &row); err == nil {
				err = streamErr
			}
		}
	}
	if writeErr := r.cmp.WriteCalls(r.o.text); err == nil {
		err = writeErr
	}
	r.writeReplicas()
	return err
}
