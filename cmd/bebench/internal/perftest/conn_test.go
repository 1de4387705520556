package perftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/qp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipe gives a TCP connection's two ends.
func pipe(t *testing.T) (a, b net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if a, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

var host = Host{PageBytes: 4096, CacheLineBytes: 64, MTU: qp.MTU1024}

// play takes one end through a whole exchange.
func play(c *Conn, t Test, mine []Key, h Host) (Host, Report, error) {
	if _, err := c.Hello(); err != nil {
		return h, Report{}, err
	}
	agreed, err := c.Agree(h)
	if err != nil {
		return h, Report{}, err
	}
	if err := c.Connect(t, mine, func([]Key) error { return nil }); err != nil {
		return h, Report{}, err
	}
	if t.EachSize() {
		if err := c.Barrier("begin"); err != nil {
			return h, Report{}, err
		}
	}
	var r Report
	if t.Reports() {
		if err := c.Barrier("end"); err != nil {
			return h, r, err
		}
		if r, err = c.Report(Report{SizeBytes: 8, Iters: uint64(len(mine)), Average: 2.5}); err != nil {
			return h, r, err
		}
	}
	if !t.Closes() {
		return agreed, r, nil
	}
	return agreed, r, c.Goodbye()
}

func TestBothEndsGetThrough(t *testing.T) {
	for _, tt := range []Test{
		{}, {Latency: true}, {OneSided: true}, {OneSided: true, Write: true}, {OneSided: true, Latency: true}, {OneSided: true, Write: true, Latency: true},
	} {
		a, b := pipe(t)
		server, client := New(context.Background(), b, time.Minute, false), New(context.Background(), a, time.Minute, true)
		done := make(chan error, 1)
		go func() {
			big := Host{PageBytes: 65536, CacheLineBytes: 128, MTU: qp.MTU4096}
			agreed, r, err := play(server, tt, []Key{{Num: 1}, {Num: 2}}, big)
			if want := (Host{65536, 128, qp.MTU1024}); err == nil && agreed != want {
				err = fmt.Errorf("server agreed on %+v, want %+v", agreed, want)
			}
			if err == nil && tt.Reports() && (r.Iters != 2 || r.Average != 2.5) {
				err = fmt.Errorf("server got the report %+v", r)
			}
			done <- err
		}()
		if _, _, err := play(client, tt, []Key{{Num: 5}, {Num: 6}}, host); err != nil {
			t.Errorf("%+v: client: %v", tt, err)
		}
		if err := <-done; err != nil {
			t.Errorf("%+v: server: %v", tt, err)
		}
		server.Close()
		client.Close()
	}
}

// good are the bytes that perftest's client sends to the server of a WRITE bandwidth
// test, step by step.
var good = []string{"6.06" + strings.Repeat("\x00", 12), "\x00\x00\x10\x00", "\x00\x00\x00\x40", "5\x00", keys[0].text, keys[0].text, keys[0].text}

// TestBadPeers sends a server good steps and then a bad one.
func TestBadPeers(t *testing.T) {
	other := strings.Replace(keys[0].text, "00001a", "00001b", 1)
	for _, tt := range []struct {
		desc  string
		steps int // good ones before
		bad   string
		want  string
		is    error
	}{
		{"silence", 0, "", "step version", control.ErrTimeout},
		{"short version", 0, "6.0", `3 of 16 bytes, "6.0"`, control.ErrTimeout},
		{"old version", 0, "5.60" + strings.Repeat("\x00", 12), "5.60", ErrVersion},
		{"no version", 0, "GET / HTTP/1.1\r\n", "GET / HTTP", ErrVersion},
		{"version without end", 0, strings.Repeat("7", 16), "777", ErrVersion},
		{"page of nothing", 1, "\x00\x00\x00\x00", "step page", nil},
		{"huge page", 1, "\xff\xff\xff\xff", "4294967295 bytes", nil},
		{"huge cache line", 2, "\x7f\xff\xff\xff", "step line", nil},
		{"MTU", 3, "9\x00", `"9\x00"`, nil},
		{"MTU of two digits", 3, "12", "step mtu", nil},
		{"no key", 4, strings.Repeat("z", shortKey-1) + "\x00", "zzzz", nil},
		{"half a key", 4, keys[0].text[:20], "20 of 59 bytes", control.ErrTimeout},
		{"long key", 4, keys[1].text, "-x", nil},
		{"half a long key", 4, keys[1].text[:80], "21 of 49 bytes", control.ErrTimeout},
		{"another queue pair", 5, other, "same -q", nil},
		{"another queue pair at the barrier", 6, other, "same -q", nil},
		{"silence after keys", 5, "", "step connected", control.ErrTimeout},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			a, b := pipe(t)
			go func() {
				for _, s := range good[:tt.steps] {
					_, _ = io.WriteString(a, s)
					_, _ = io.ReadFull(a, make([]byte, len(s)))
				}
				_, _ = io.WriteString(a, tt.bad)
			}()
			limit := time.Minute
			if tt.is == control.ErrTimeout {
				limit = 600 * time.Millisecond
			}
			c := New(context.Background(), b, limit, false)
			defer c.Close()
			_, _, err := play(c, Test{OneSided: true, Write: true}, []Key{{Num: 1}}, host)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v\nwant %q and %v", err, tt.want, tt.is)
			}
			var step *control.StepError
			if !errors.As(err, &step) {
				t.Errorf("error %T, want a *control.StepError", err)
			}
		})
	}
}

func TestPeerGone(t *testing.T) {
	a, b := pipe(t)
	c := New(context.Background(), b, time.Minute, false)
	defer c.Close()
	_, _ = io.WriteString(a, "6.")
	a.Close()
	var short *ShortError
	if _, err := c.Hello(); !errors.Is(err, control.ErrGone) || !errors.As(err, &short) || string(short.Got) != "6." {
		t.Errorf("error %v, want %v with what came", err, control.ErrGone)
	}
}

func TestContextEndsAStep(t *testing.T) {
	_, b := pipe(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	c := New(ctx, b, time.Minute, false)
	defer c.Close()
	time.AfterFunc(20*time.Millisecond, func() { cancel(control.ErrInterrupted) })
	if _, err := c.Hello(); !errors.Is(err, control.ErrInterrupted) {
		t.Errorf("error %v, want %v", err, control.ErrInterrupted)
	}
}

func TestWatch(t *testing.T) {
	a, b := pipe(t)
	c := New(context.Background(), b, time.Minute, false)
	defer c.Close()
	_, stop := c.Watch("run")
	stop() // with nothing to tell
	news, stop := c.Watch("run")
	_, _ = io.WriteString(a, "x")
	if err := <-news; err != nil {
		t.Errorf("error %v at the peer's next step", err)
	}
	stop()
	if b, err := c.r.ReadByte(); b != 'x' || err != nil {
		t.Errorf("then read %q, %v: the step was lost", b, err)
	}
	news, stop = c.Watch("run")
	a.Close()
	if err := <-news; !errors.Is(err, control.ErrGone) {
		t.Errorf("error %v, want %v", err, control.ErrGone)
	}
	stop()
}
