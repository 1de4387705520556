// Package endstest is for tests of the packages that measure between two ends: it runs
// both in one process, each with a simulated device of its own.
package endstest

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// Limit is the time limit of a step between two ends that are both there.
const Limit = 20 * time.Second

// Open gives a simulated device.
func Open(t testing.TB) verbs.Device {
	t.Helper()
	d, err := sim.Open("sim:")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Play connects two ends by TCP and lets both play at once, the server in a goroutine
// of its own. Each closes its connection.
func Play(t testing.TB, server, client func(net.Conn) error) (clientErr, serverErr error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	done := make(chan error, 1)
	go func() {
		nc, err := ln.Accept()
		if err == nil {
			err = server(nc)
		}
		done <- err
	}()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	clientErr = client(nc)
	return clientErr, <-done
}

// Run is how a package measures at one end, with parameters P.
type Run[P any] func(soft, ctx context.Context, c *control.Conn, dev verbs.Device, p *P, client bool, sink report.Sink) error

// Control plays both ends of a test over a control connection, and collects what the
// client measures. The ends' parameters may differ where a test wants so.
func Control[P any](t testing.TB, soft context.Context, run Run[P], server, client *P, progress func(done, total int64)) (samples []*report.Sample, clientErr, serverErr error) {
	t.Helper()
	end := func(p *P, isClient bool, sink report.Sink) func(net.Conn) error {
		dev := Open(t)
		return func(nc net.Conn) error {
			c := control.New(context.Background(), nc, Limit)
			defer c.Close()
			return run(soft, context.Background(), c, dev, p, isClient, sink)
		}
	}
	clientErr, serverErr = Play(t, end(server, false, report.Sink{}), end(client, true, report.Sink{Sample: Into(&samples), Progress: progress}))
	return samples, clientErr, serverErr
}

// Both plays a test with the same parameters at both ends, which must go well.
func Both[P any](t testing.TB, run Run[P], p P) []*report.Sample {
	t.Helper()
	other := p
	samples, err, serverErr := Control(t, context.Background(), run, &other, &p, nil)
	if err != nil || serverErr != nil {
		t.Errorf("client: %v; server: %v", err, serverErr)
	}
	return samples
}

// Into collects samples.
func Into(samples *[]*report.Sample) func(*report.Sample) error {
	return func(s *report.Sample) error {
		*samples = append(*samples, s)
		return nil
	}
}
