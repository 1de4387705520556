package channel_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testmodel"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// echo answers with the request's bytes, who with the server's name.
var echo, who = archon.NewMethod("test.Echo"), archon.NewMethod("test.Who")

// long bounds what must not last for ever.
const long = 2 * time.Minute

func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(long); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, long)
		}
	}
}

// quick settles fast enough for a test, and gives nobody up since the machine is busy.
func quick() channel.Recovery {
	return channel.Recovery{PingInterval: 200 * time.Millisecond, PingTimeout: 20 * time.Second, Settle: 300 * time.Millisecond, RedialMax: 200 * time.Millisecond,
		DialTimeout: 20 * time.Second, FallbackDelay: 20 * time.Second, WaitReady: time.Minute}
}

// alert is quick, and also notices soon that somebody is silent.
func alert() channel.Recovery {
	r := quick()
	r.PingTimeout, r.DialTimeout = time.Second, 2*time.Second
	return r
}

// server is a server of a test that may be started again at the same address.
type server struct {
	t     testing.TB
	name  string
	calls atomic.Int64
	fail  atomic.Pointer[archon.Error] // what every call gets
	over  archon.TCP
	tcp   string // address
	more  handlers
	s     *archon.Server
	wg    sync.WaitGroup
	lns   []archon.Listener
}

// handlers are methods of a server beside echo and who.
type handlers map[archon.Method]archon.Handler

// startServer serves over TCP.
func startServer(t testing.TB, name string, more handlers) *server {
	v := &server{t: t, name: name, tcp: "127.0.0.1:0", more: more}
	v.start()
	t.Cleanup(v.stop)
	return v
}

func (v *server) start() {
	v.s = archon.NewServer(archon.ServerConfig{})
	answer := func(text func(*archon.ServerCall) []byte) archon.Handler {
		return func(call *archon.ServerCall) error {
			v.calls.Add(1)
			if err := v.fail.Load(); err != nil {
				return err
			}
			out, err := call.Alloc(len(text(call)))
			if err != nil {
				return err
			}
			copy(out, text(call))
			return nil
		}
	}
	err := errors.Join(v.s.HandleInline(echo, answer(func(c *archon.ServerCall) []byte { return c.Payload() })),
		v.s.HandleInline(who, answer(func(*archon.ServerCall) []byte { return []byte(v.name) })))
	for m, h := range v.more {
		err = errors.Join(err, v.s.Handle(m, h))
	}
	if err != nil {
		v.t.Fatal(err)
	}
	v.tcp = v.listen(v.over, v.tcp)
}

func (v *server) listen(tr archon.Transport, addr string) string {
	var l archon.Listener
	var err error
	for range 100 { // an old socket may still have the address
		if l, err = tr.Listen(addr); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		v.t.Fatal(err)
	}
	v.lns = append(v.lns, l)
	s := v.s
	v.wg.Go(func() {
		if err := s.Serve(context.Background(), l); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, archon.ErrServerClosed) {
			v.t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String()
}

func (v *server) stop() {
	v.s.Close()
	for _, l := range v.lns {
		l.Close()
	}
	v.lns = nil
	v.wg.Wait()
}

// newChannel gives a channel that is closed when the test ends.
func newChannel(t testing.TB, cfg channel.Config) *channel.Channel {
	t.Helper()
	if cfg.Service == "" {
		cfg.Service = "test"
	}
	if cfg.Recovery == (channel.Recovery{}) {
		cfg.Recovery = quick()
	}
	cfg.Idempotent = append(cfg.Idempotent, echo, who)
	ch, err := channel.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ch.Close() })
	return ch
}

func ask(ctx context.Context, ch *channel.Channel, m archon.Method, payload string) (string, error) {
	resp, err := ch.Do(ctx, &archon.Invocation{Method: m, Request: archon.Bytes(payload)})
	if err != nil {
		return "", err
	}
	defer resp.Release()
	return string(resp.Payload()), nil
}

// load calls from some goroutines until stopped, and counts what is wrong.
type load struct {
	stop  context.CancelFunc
	wg    sync.WaitGroup
	calls atomic.Int64

	mu    sync.Mutex
	times []time.Duration // since the last take
}

// take gives the p99 of the calls since the last take.
func (l *load) take() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.times) == 0 {
		return 0
	}
	slices.Sort(l.times)
	p99 := l.times[len(l.times)*99/100]
	l.times = l.times[:0]
	return p99
}

func startLoad(t testing.TB, ch *channel.Channel, workers int) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{stop: cancel}
	for w := range workers {
		l.wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				call, done := context.WithTimeout(context.Background(), long)
				want, began := fmt.Sprint(w, ".", i), time.Now()
				if got, err := ask(call, ch, echo, want); err != nil || got != want {
					t.Errorf("call %s: %q, %v", want, got, err)
					cancel()
				}
				done()
				l.mu.Lock()
				l.times = append(l.times, time.Since(began))
				l.mu.Unlock()
				l.calls.Add(1)
				time.Sleep(time.Millisecond)
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

// more waits for so many more calls to succeed.
func (l *load) more(t testing.TB, n int64) {
	t.Helper()
	from := l.calls.Load()
	eventually(t, "calls go on", func() bool { return l.calls.Load() >= from+n || t.Failed() })
}

func (l *load) end() {
	l.stop()
	l.wg.Wait()
}

// stats gives the stats of the replica of a name, which may not be known yet.
func stats(ch *channel.Channel, name string) channel.ReplicaStats {
	for _, r := range ch.Stats().Replicas {
		if r.Name == name {
			return r
		}
	}
	return channel.ReplicaStats{}
}

// openSim opens a simulated device of its own on a fabric.
func openSim(t testing.TB, f *sim.Fabric, name string) (*sim.Device, func() (verbs.Context, error)) {
	t.Helper()
	dev, err := f.NewDevice(name, sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	on := testmodel.On(t, dev)
	return dev, on.Open
}

// newDevice makes a transport on a device, which is closed when the test ends.
func newDevice(t testing.TB, open func() (verbs.Context, error)) *channel.Device {
	d := channel.NewDevice(open, be.Config{AckTimeout: 10, RetryCount: 2, StepTimeout: 10 * time.Second, Linger: 100 * time.Millisecond})
	t.Cleanup(func() { eventually(t, "close the device", func() bool { return d.Close() == nil }) })
	return d
}
