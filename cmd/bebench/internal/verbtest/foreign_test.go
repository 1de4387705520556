package verbtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/endstest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/perftest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

// foreignEnds runs a test in perftest's way, both ends ours. The lab runs the real
// programs.
func foreignEnds(t *testing.T, ctx context.Context, limit time.Duration, server, client *Params) (samples []*report.Sample, clientErr, serverErr error) {
	t.Helper()
	end := func(p *Params, isClient bool, sink report.Sink) func(net.Conn) error {
		dev := endstest.Open(t)
		return func(nc net.Conn) error {
			c := perftest.New(context.Background(), nc, limit, isClient)
			defer c.Close()
			if _, err := c.Hello(); err != nil {
				return err
			}
			return RunPerftest(ctx, context.Background(), c, dev, p, sink)
		}
	}
	clientErr, serverErr = endstest.Play(t, end(server, false, report.Sink{}), end(client, true, report.Sink{Sample: endstest.Into(&samples)}))
	return samples, clientErr, serverErr
}

func foreignDefaults(op Op, latency bool) Params {
	p := defaults()
	p.Op, p.Latency, p.Verify = op, latency, false
	p.Sizes = []int{2, 64, 5000, 100000}
	if op == Atomic {
		p.Sizes = []int{8}
	}
	return p
}

func TestForeignEveryOperation(t *testing.T) {
	for _, op := range []Op{Send, Write, Read, Atomic} {
		for _, latency := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/latency=%v", op, latency), func(t *testing.T) {
				p := foreignDefaults(op, latency)
				p.Inline = 32
				if op == Read || op == Atomic {
					p.Inline = 0
				}
				if !latency {
					p.QPs, p.Threads, p.PostList, p.Events = 3, 2, 2, true
				}
				other := p
				samples, err, serverErr := foreignEnds(t, context.Background(), endstest.Limit, &other, &p)
				if err != nil || serverErr != nil || len(samples) != len(p.Sizes) {
					t.Fatalf("client: %v; server: %v; %d results, want %d", err, serverErr, len(samples), len(p.Sizes))
				}
				for i, s := range samples {
					if s.SizeBytes != p.Sizes[i] || s.Ops != int64(p.Iters*p.QPs) || s.Wall <= 0 || s.Verified != nil || s.Stopped {
						t.Errorf("size %d: %+v", p.Sizes[i], s)
					}
					// ib_write_lat's client times its answers, so there is one less.
					if n := s.Latency.Count(); latency && n != s.Ops && !(op == Write && n == s.Ops-1) {
						t.Errorf("size %d: %d latencies of %d operations", p.Sizes[i], n, s.Ops)
					}
				}
			})
		}
	}
}

func TestForeignDuration(t *testing.T) {
	for _, op := range []Op{Write, Read} {
		p := foreignDefaults(op, false)
		p.Sizes, p.Duration = []int{64}, 50*time.Millisecond
		other := p
		samples, err, serverErr := foreignEnds(t, context.Background(), endstest.Limit, &other, &p)
		if err != nil || serverErr != nil || samples[0].Ops == 0 {
			t.Errorf("%v: client: %v; server: %v; %+v", op, err, serverErr, samples)
		}
	}
}

// TestForeignDifferentOptions has ends with options that perftest does not compare.
func TestForeignDifferentOptions(t *testing.T) {
	for _, tt := range []struct {
		desc     string
		op       Op
		change   func(client *Params)
		atServer string // what the server says; "" for anything
	}{
		{"fewer messages", Send, func(p *Params) { p.Iters = 100 }, "after 100 messages of 200"},
		{"more messages", Send, func(p *Params) { p.Iters = 1000 }, ""},
		{"shorter messages", Send, func(p *Params) { p.Sizes = []int{32} }, "same -s"},
		{"longer messages", Send, func(p *Params) { p.Sizes = []int{128} }, ""},
		{"longer than the memory", Write, func(p *Params) { p.Sizes = []int{1 << 20} }, ""},
		{"more queue pairs", Write, func(p *Params) { p.QPs = 2 }, "same -q"},
		{"fewer queue pairs at the client", Write, func(p *Params) { p.QPs = 1 }, ""},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			server := foreignDefaults(tt.op, false)
			server.Sizes = []int{64}
			if strings.HasPrefix(tt.desc, "fewer queue") {
				server.QPs = 3
			}
			client := server
			tt.change(&client)
			limit := 400 * time.Millisecond
			if tt.atServer != "" { // on a busy machine the peer's next step may take longer
				limit = 3 * time.Second
			}
			start := time.Now()
			_, err, serverErr := foreignEnds(t, context.Background(), limit, &server, &client)
			if err == nil && serverErr == nil {
				t.Fatal("nobody noticed")
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %v: a hang", took)
			}
			if tt.atServer != "" && (serverErr == nil || !strings.Contains(serverErr.Error(), tt.atServer)) {
				t.Errorf("server: %v; want %q", serverErr, tt.atServer)
			}
		})
	}
}

// TestForeignPeerThatHangs connects its queue pairs and then does nothing.
func TestForeignPeerThatHangs(t *testing.T) {
	for _, tt := range []struct {
		op      Op
		latency bool
	}{{Send, false}, {Write, true}} {
		a, b := net.Pipe()
		hung := make(chan struct{})
		go func() { // a mirror: our queue pairs are connected to themselves
			defer close(hung)
			_, _ = io.Copy(b, b)
		}()
		p := foreignDefaults(tt.op, tt.latency)
		p.Sizes = []int{64}
		c := perftest.New(context.Background(), a, 600*time.Millisecond, true)
		if _, err := c.Hello(); err != nil {
			t.Fatal(err)
		}
		err := RunPerftest(context.Background(), context.Background(), c, endstest.Open(t), &p, report.Sink{})
		if !errors.Is(err, control.ErrTimeout) {
			t.Errorf("%v: error %v, want a timeout", tt.op, err)
		}
		c.Close()
		b.Close()
		<-hung
	}
}

func TestForeignInterrupt(t *testing.T) {
	p := foreignDefaults(Send, false)
	p.Sizes, p.Iters = []int{64}, 1<<40
	other := p
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err, serverErr := foreignEnds(t, ctx, endstest.Limit, &other, &p)
	for _, e := range []error{err, serverErr} {
		if !errors.Is(e, control.ErrInterrupted) && !errors.Is(e, control.ErrGone) {
			t.Errorf("error %v, want an interrupt, or that the peer is gone", e)
		}
	}
}
