package verbtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"go.uber.org/goleak"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/endstest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// defaults are small parameters that every test may change.
func defaults() Params {
	return Params{
		Op: Send, Sizes: []int{64}, Iters: 200, QPs: 1, Threads: 1, TxDepth: 16, RxDepth: 16, Verify: true,
		Port: 1, GIDIndex: -1, CQMod: 4, PostList: 1, AckTimeout: 14, Seed: 1,
	}
}

func TestEveryOperation(t *testing.T) {
	for _, op := range Ops() {
		for _, latency := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/latency=%v", op, latency), func(t *testing.T) {
				p := defaults()
				p.Op, p.Latency, p.Sizes = op, latency, []int{1, 8, 4096, 100000}
				if op == Atomic {
					p.Sizes = []int{8}
				}
				samples := endstest.Both(t, Run, p)
				if len(samples) != len(p.Sizes) {
					t.Fatalf("%d results, want %d", len(samples), len(p.Sizes))
				}
				for i, s := range samples {
					if s.SizeBytes != p.Sizes[i] || s.Ops != int64(p.Iters) || s.Wall <= 0 || s.Verified == nil || !*s.Verified || s.Stopped {
						t.Errorf("size %d: %+v", p.Sizes[i], s)
					}
					if s.Latency.Count() == 0 || latency && s.Latency.Count() != s.Ops {
						t.Errorf("size %d: %d latencies of %d operations", p.Sizes[i], s.Latency.Count(), s.Ops)
					}
					if c := s.Counters; c["requests"] < s.Ops || c["doorbells"] != c["requests"] || c["completions"] == 0 {
						t.Errorf("size %d: counters %v of %d operations", p.Sizes[i], c, s.Ops)
					}
					if s.Halved != (latency && op != Read && op != Atomic) {
						t.Errorf("half a round trip: %v", s.Halved)
					}
					if latency == (s.Bytes != 0) || latency == (s.PeakBps != 0) {
						t.Errorf("bandwidth of a latency test, or none: %d bytes, peak %v", s.Bytes, s.PeakBps)
					}
				}
			})
		}
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		desc   string
		change func(*Params)
		ops    int64
	}{
		{"several queue pairs", func(p *Params) { p.QPs = 5 }, 1000},
		{"threads", func(p *Params) { p.QPs, p.Threads = 5, 2 }, 1000},
		{"both ways", func(p *Params) { p.QPs, p.Bidirectional = 2, true }, 800},
		{"inline", func(p *Params) { p.Inline = 64 }, 200},
		{"events", func(p *Params) { p.Events = true }, 200},
		{"chains", func(p *Params) { p.PostList = 7 }, 200},
		{"every request signaled", func(p *Params) { p.CQMod = 1 }, 200},
		{"sparsely signaled", func(p *Params) { p.CQMod = 1000 }, 200},
		{"one receive", func(p *Params) { p.RxDepth = 1 }, 200},
		{"depth of one", func(p *Params) { p.TxDepth, p.RxDepth = 1, 1 }, 200},
		{"more sends than receives", func(p *Params) { p.TxDepth, p.RxDepth = 64, 4 }, 200},
		{"no peak", func(p *Params) { p.NoPeak = true }, 200},
		{"one message", func(p *Params) { p.Iters = 1 }, 1},
		{"not verified", func(p *Params) { p.Verify = false }, 200},
		{"long messages share slots", func(p *Params) { p.Sizes, p.Iters = []int{10 << 20}, 8 }, 8},
	} {
		for _, op := range []Op{Send, Write, WriteImm, Read, Atomic} {
			t.Run(fmt.Sprintf("%s/%v", tt.desc, op), func(t *testing.T) {
				p := defaults()
				p.Op = op
				tt.change(&p)
				if op == Atomic {
					p.Sizes = []int{8}
				}
				samples := endstest.Both(t, Run, p)
				if len(samples) != 1 || samples[0].Ops != tt.ops {
					t.Fatalf("%d results, first %+v", len(samples), samples)
				}
			})
		}
	}
}

func TestLatencyOptions(t *testing.T) {
	for desc, change := range map[string]func(*Params){
		"one slot": func(p *Params) { p.Sizes, p.Iters = []int{33 << 20}, 3 },
		"inline":   func(p *Params) { p.Inline = 64 },
		"events":   func(p *Params) { p.Events = true },
		"depth 1":  func(p *Params) { p.TxDepth, p.RxDepth = 1, 1 },
	} {
		for _, op := range []Op{Send, Write, WriteImm} {
			t.Run(fmt.Sprintf("%s/%v", desc, op), func(t *testing.T) {
				p := defaults()
				p.Op, p.Latency = op, true
				change(&p)
				p.Events = p.Events && op != Write
				endstest.Both(t, Run, p)
			})
		}
	}
}

func TestDuration(t *testing.T) {
	for _, op := range Ops() {
		for _, latency := range []bool{false, true} {
			p := defaults()
			p.Op, p.Latency, p.Duration, p.CQMod, p.PostList = op, latency, 20*time.Millisecond, 5, 3
			if op == Atomic {
				p.Sizes = []int{8}
			}
			s := endstest.Both(t, Run, p)
			if len(s) != 1 || s[0].Ops == 0 || s[0].Stopped {
				t.Errorf("%v: %+v", op, s)
			}
		}
	}
}

// TestWrongBytesAreFound is the negative control of verification: the ends expect
// the bytes of different seeds.
func TestWrongBytesAreFound(t *testing.T) {
	for _, op := range []Op{Send, Write, WriteImm, Read} {
		for _, latency := range []bool{false, true} {
			server := defaults()
			server.Op, server.Latency = op, latency
			client := server
			client.Seed++
			samples, err, serverErr := endstest.Control(t, context.Background(), Run, &server, &client, nil)
			if exit.Code(err) != exit.Mismatch || exit.Code(serverErr) != exit.Mismatch {
				t.Errorf("%v latency=%v: client: %v; server: %v", op, latency, err, serverErr)
			}
			if len(samples) != 1 || *samples[0].Verified {
				t.Errorf("%v: the result says verified", op)
			}
		}
	}
}

func TestInterruptFlagsPartialResults(t *testing.T) {
	for _, latency := range []bool{false, true} {
		p := defaults()
		p.Latency, p.Duration, p.Sizes = latency, time.Hour, []int{64, 128}
		ctx, cancel := context.WithCancel(context.Background())
		other := p
		samples, err, serverErr := endstest.Control(t, ctx, Run, &other, &p, func(done, _ int64) {
			if done > 0 {
				cancel()
			}
		})
		for _, e := range []error{err, serverErr} {
			if e == nil || !strings.Contains(e.Error(), "interrupted") {
				t.Errorf("err = %v", e)
			}
		}
		if len(samples) != 1 || !samples[0].Stopped || samples[0].Ops == 0 || !*samples[0].Verified {
			t.Errorf("samples: %+v", samples)
		}
	}
}

func TestSetUpErrorsReachBothEnds(t *testing.T) {
	for _, tt := range []struct {
		desc   string
		change func(*Params)
		want   string
	}{
		{"port", func(p *Params) { p.Port = 9 }, "-i"},
		{"GID", func(p *Params) { p.GIDIndex = 99 }, "-x"},
		{"MTU", func(p *Params) { p.MTUBytes = 1000 }, "MTU 1000"},
		{"depth", func(p *Params) { p.TxDepth = 1 << 24 }, "beyond the device's limit"},
		{"flows", func(p *Params) { p.Threads, p.QPs = 2, 2 }, "flows"},
		{"queue pairs", func(p *Params) { p.QPs = 2 }, "queue pairs"},
	} {
		server := defaults()
		client := server
		tt.change(&client)
		_, err, serverErr := endstest.Control(t, context.Background(), Run, &server, &client, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: client: %v; want %q", tt.desc, err, tt.want)
		}
		if serverErr == nil || errors.Is(serverErr, control.ErrTimeout) {
			t.Errorf("%s: server: %v", tt.desc, serverErr)
		}
	}
}

// TestPeerThatHangs stops answering after each step, and must be found out by the
// time limit, at both roles.
func TestPeerThatHangs(t *testing.T) {
	for _, after := range []string{"", "endpoints", "ready", "run"} {
		t.Run("after "+after, func(t *testing.T) {
			a, b := net.Pipe()
			defer a.Close()
			go hangAfter(b, after)
			c := control.New(context.Background(), a, 600*time.Millisecond)
			p := defaults()
			p.Latency = true
			err := Run(context.Background(), context.Background(), c, endstest.Open(t), &p, true, report.Sink{})
			if !errors.Is(err, control.ErrTimeout) {
				t.Errorf("err = %v, want a timeout", err)
			}
			a.Close()
			b.Close()
		})
	}
}

// hangAfter takes part until a step is over, and then only reads.
func hangAfter(nc net.Conn, after string) {
	c := control.New(context.Background(), nc, time.Minute)
	defer c.Close()
	var peer endpoint
	if c.Recv("endpoints", &peer) == nil && after != "" {
		_ = c.Send("endpoints", peer) // its own: it talks to itself
		if c.Recv("ready", nil) == nil && after != "endpoints" {
			_ = c.Send("ready", nil)
			if after == "run" {
				_ = c.Send("alive", nil)
			}
		}
	}
	buf := make([]byte, 4096)
	for {
		if _, err := nc.Read(buf); err != nil {
			return
		}
	}
}

// TestPeerThatPromisesMore says that it sent messages which never came.
func TestPeerThatPromisesMore(t *testing.T) {
	for _, events := range []bool{false, true} {
		a, b := net.Pipe()
		go func() {
			c := control.New(context.Background(), b, time.Minute)
			defer c.Close()
			var peer endpoint
			_ = c.Recv("endpoints", &peer)
			_ = c.Send("endpoints", peer)
			_ = c.Recv("ready", nil)
			_ = c.Send("ready", nil)
			go func() {
				buf := make([]byte, 4096)
				for {
					if _, err := b.Read(buf); err != nil {
						return
					}
				}
			}()
			err := c.Send("finished", finished{map[int][]int64{0: {5}}})
			for err == nil {
				time.Sleep(50 * time.Millisecond)
				err = c.Send("alive", nil)
			}
		}()
		c := control.New(context.Background(), a, 600*time.Millisecond)
		p := defaults()
		p.Events = events
		if err := Run(context.Background(), context.Background(), c, endstest.Open(t), &p, false, report.Sink{}); !errors.Is(err, errMissing) {
			t.Errorf("events=%v: err = %v, want %v", events, err, errMissing)
		}
		a.Close()
		b.Close()
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	count := func() int {
		e, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("this system does not list descriptors")
		}
		return len(e)
	}
	run := func() {
		p := defaults()
		p.QPs, p.Bidirectional = 3, true
		endstest.Both(t, Run, p)
	}
	run()
	before := count()
	for range 5 {
		run()
	}
	runtime.GC()
	for end := time.Now().Add(time.Minute); count() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d descriptors, %d before", count(), before)
		}
	}
}

func BenchmarkPingPong(b *testing.B) {
	for _, op := range []Op{Send, Write, Read} {
		b.Run("op="+op.String(), func(b *testing.B) {
			p := defaults()
			p.Op, p.Latency, p.Iters, p.Verify = op, true, 20000, false
			for b.Loop() {
				s := endstest.Both(b, Run, p)
				b.ReportMetric(s[0].Latency.Mean(), "ns/op")
			}
		})
	}
}
