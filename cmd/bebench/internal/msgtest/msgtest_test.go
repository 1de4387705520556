package msgtest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"go.uber.org/goleak"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/cost"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/endstest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func defaults() Params {
	return Params{Transport: OverBE, Sizes: []int{64}, Iters: 200, Sockets: 1, Depth: 8, Verify: true, Seed: 1}
}

func TestSizes(t *testing.T) {
	for i := range 4 {
		p := defaults()
		latency := i%2 == 0
		p.Latency, p.Sizes, p.Iters = latency, []int{1, 7, 8, 9, 4096, 300000}, 50
		if i >= 2 {
			p.Transport = OverTCP
		}
		samples := endstest.Both(t, Run, p)
		if len(samples) != len(p.Sizes) {
			t.Fatalf("%d results, want %d", len(samples), len(p.Sizes))
		}
		for i, s := range samples {
			if s.SizeBytes != p.Sizes[i] || s.Ops != 50 || s.Latency.Count() != 50 || s.Wall <= 0 || !*s.Verified || s.Halved != latency || s.Name != p.Transport || (s.Counters["doorbells"] == 0) == (p.Transport == OverBE) {
				t.Errorf("latency=%v size %d: %+v", latency, p.Sizes[i], s)
			}
			if latency == (s.Bytes != 0) {
				t.Errorf("latency=%v: %d bytes", latency, s.Bytes)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		desc   string
		change func(*Params)
		ops    int64
	}{
		{"sockets", func(p *Params) { p.Sockets = 5 }, 1000},
		{"both ways", func(p *Params) { p.Sockets, p.Bidirectional = 2, true }, 800},
		{"depth of one", func(p *Params) { p.Depth = 1 }, 200},
		{"deep", func(p *Params) { p.Depth = 300 }, 200},
		{"not verified", func(p *Params) { p.Verify = false }, 200},
		{"warmed up", func(p *Params) { p.Sockets, p.Warm = 2, 30 }, 400},
		{"without order", func(p *Params) { p.Unordered, p.Sockets = true, 2 }, 400},
		{"read by the receiver", func(p *Params) { p.Get, p.Sizes = true, []int{100_000} }, 200},
		{"beside busy goroutines", func(p *Params) { p.Busy = 2 }, 200},
		{"by weight", func(p *Params) { p.Weights, p.Sockets = []int{1, 4}, 3 }, 600},
		{"TCP both ways", func(p *Params) { p.Transport, p.Sockets, p.Bidirectional, p.Warm = OverTCP, 3, true, 5 }, 1200},
		{"TCP, deep", func(p *Params) { p.Transport, p.Depth = OverTCP, 700 }, 200},
		{"latency of sockets at once", func(p *Params) { p.Latency, p.Sockets = true, 3 }, 600},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			p := defaults()
			tt.change(&p)
			if s := endstest.Both(t, Run, p); len(s) != 1 || s[0].Ops != tt.ops {
				t.Errorf("samples: %+v", s)
			}
		})
	}
}

func TestDuration(t *testing.T) {
	for _, latency := range []bool{false, true} {
		p := defaults()
		p.Latency, p.Duration = latency, 20*time.Millisecond
		if s := endstest.Both(t, Run, p); len(s) != 1 || s[0].Ops == 0 || s[0].Stopped {
			t.Errorf("latency=%v: %+v", latency, s)
		}
	}
}

func TestWrongBytesAreFound(t *testing.T) {
	for i := range 4 {
		server := defaults()
		latency := i%2 == 0
		server.Latency = latency
		if i >= 2 {
			server.Transport = OverTCP
		}
		client := server
		client.Seed++
		samples, err, serverErr := endstest.Control(t, context.Background(), Run, &server, &client, nil)
		if exit.Code(err) != exit.Mismatch || exit.Code(serverErr) != exit.Mismatch {
			t.Errorf("latency=%v: client: %v; server: %v", latency, err, serverErr)
		}
		if len(samples) != 1 || *samples[0].Verified {
			t.Error("the result says verified")
		}
	}
}

func TestCheck(t *testing.T) {
	for _, size := range []int{1, 8, 9, 100} {
		b := make([]byte, size)
		fill(b, 3)
		stamp(b, 258)
		if what := check(b, size, 3, 258, true); what != "" {
			t.Errorf("size %d: %s", size, what)
		}
		for i := range b {
			b[i] ^= 1
			if check(b, size, 3, 258, true) == "" {
				t.Errorf("size %d: byte %d changed and passes", size, i)
			}
			b[i] ^= 1
		}
		if size > numberBytes {
			b[size-1] ^= 1
			if what := check(b, size, 3, 258, false); what != "" {
				t.Errorf("size %d: bytes that were not to be checked: %s", size, what)
			}
			b[size-1] ^= 1
		}
		if check(b, size, 3, 259, true) == "" || check(b, size+1, 3, 258, true) == "" {
			t.Errorf("size %d: another message or length passes", size)
		}
		if n := testing.AllocsPerRun(100, func() { check(b, size, 3, 258, true) }); n != 0 {
			t.Errorf("size %d: %v allocations, which would count as the data path's", size, n)
		}
	}
}

// TestMissingMessagesAreFound: of messages without order, each number has to come once.
func TestMissingMessagesAreFound(t *testing.T) {
	for _, tt := range []struct {
		numbers []int64
		ok      bool
	}{{[]int64{2, 0, 3, 1}, true}, {[]int64{0, 1, 1, 3}, false}, {[]int64{0, 2, 3, 4}, false}} {
		p := defaults()
		p.Unordered, p.Verify = true, true
		l := &line{p: &p, size: 100}
		for i, m := range tt.numbers {
			b := make([]byte, 100)
			fill(b, p.seed(0, true))
			stamp(b, m)
			l.check(b, int64(i))
		}
		if l.complete(); (l.bad == "") != tt.ok {
			t.Errorf("%v: %q", tt.numbers, l.bad)
		}
	}
}

func TestCopy(t *testing.T) {
	for _, size := range []int{1, 5000, 3 << 20} {
		s, err := Copy(size, 3, 5*time.Millisecond, nil)
		if err != nil || s.Ops == 0 || s.Bytes != s.Ops*int64(size) || s.Wall < 5*time.Millisecond || s.Stopped {
			t.Errorf("size %d: %+v, %v", size, s, err)
		}
	}
	stop := make(chan struct{})
	close(stop)
	if s, err := Copy(64, 1, time.Hour, stop); err != nil || !s.Stopped {
		t.Errorf("stopped: %+v, %v", s, err)
	}
}

func TestFairness(t *testing.T) {
	p := defaults()
	p.Duration, p.Weights = time.Second, []int{1, 3}
	r := &round{p: &p}
	for _, ops := range []int64{100, 300} {
		l := &line{}
		l.ops.Store(ops)
		r.lines = append(r.lines, l)
	}
	if f := r.fairness(); f < 0.9999 || f > 1 {
		t.Errorf("shares by weight: %v", f)
	}
	p.Weights = nil
	if f := r.fairness(); f < 0.79 || f > 0.81 { // 400² / (2 * (100² + 300²))
		t.Errorf("shares of 1 and 3: %v, want 0.8", f)
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
		if len(samples) != 1 || !samples[0].Stopped || samples[0].Ops == 0 {
			t.Errorf("samples: %+v", samples)
		}
	}
}

// TestPeerThatLeaves closes the control connection in the middle.
func TestPeerThatLeaves(t *testing.T) {
	a, b := net.Pipe()
	b.Close()
	c := control.New(context.Background(), a, endstest.Limit)
	defer c.Close()
	p := defaults()
	if err := Run(context.Background(), context.Background(), c, endstest.Open(t), &p, true, report.Sink{}); err == nil || !strings.Contains(err.Error(), "address") {
		t.Errorf("err = %v, want one that names the step", err)
	}
}

func BenchmarkMsg(b *testing.B) {
	for _, size := range []int{64, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			p := defaults()
			p.Sizes, p.Iters, p.Verify = []int{size}, 2000, false
			for b.Loop() {
				s := endstest.Both(b, Run, p)
				b.ReportMetric(float64(s[0].Wall)/float64(s[0].Ops), "ns/msg")
			}
		})
	}
}

// TestPeerThatHangs has a peer that only reads: a server that does not tell its
// address, a client that does not dial.
func TestPeerThatHangs(t *testing.T) {
	for _, client := range []bool{true, false} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		silent, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		nc, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c := control.New(context.Background(), nc, 300*time.Millisecond)
		p := defaults()
		err = Run(context.Background(), context.Background(), c, endstest.Open(t), &p, client, report.Sink{})
		c.Close()
		step := map[bool]string{true: "step address", false: "step connected"}[client]
		if !errors.Is(err, control.ErrTimeout) || !strings.Contains(err.Error(), step) {
			t.Errorf("client=%v: err = %v, want a timeout of %s", client, err, step)
		}
	}
}

// TestTimeIsOfAllSockets: that of a bandwidth test is from the first message of the socket
// that began first until the last of any has arrived.
func TestTimeIsOfAllSockets(t *testing.T) {
	at := func(s time.Duration) time.Time { return time.Unix(100, 0).Add(s * time.Second) }
	r := &round{p: &Params{Duration: time.Second}, size: 1, ledger: newLedger(3), lines: []*line{
		{began: at(1), ended: at(3)}, {began: at(0), ended: at(1)}, {began: at(3), ended: at(4)},
	}}
	s, err := r.sample(&cost.Spent{}, &verdict{Behind: 2})
	if err != nil || s.Wall != 6*time.Second {
		t.Errorf("%v, %v, want 4 s until the last was sent and 2 until it had come", s.Wall, err)
	}
}
