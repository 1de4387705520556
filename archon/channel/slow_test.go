package channel_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testnet"
)

// slow is a network whose connections carry few bytes a second, once there is a rate.
type slow struct {
	be.Bootstrap
	rate *atomic.Int64
}

func (s slow) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := s.Bootstrap.Dial(ctx, addr)
	return slowConn{c, s.rate}, err
}

func (s slow) Listen(addr string) (net.Listener, error) {
	l, err := s.Bootstrap.Listen(addr)
	return slowListener{l, s.rate}, err
}

type slowListener struct {
	net.Listener
	rate *atomic.Int64
}

func (l slowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return slowConn{c, l.rate}, err
}

type slowConn struct {
	net.Conn
	rate *atomic.Int64
}

func (c slowConn) Write(b []byte) (n int, err error) {
	for err == nil && len(b) > 0 {
		part := b[:min(len(b), 128<<10)]
		b = b[len(part):]
		if rate := c.rate.Load(); rate > 0 {
			time.Sleep(time.Duration(len(part)) * time.Second / time.Duration(rate))
		}
		var k int
		k, err = c.Conn.Write(part)
		n += k
	}
	return n, err
}

// TestLongMessagesAreNoSilence: on a slow link, messages that are on their way for
// longer than a ping may take are no reason to give the connection up.
func TestLongMessagesAreNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // what is being written ends, last of all
		n, rate := testnet.New(1), new(atomic.Int64)
		v := &server{t: t, name: "a", over: archon.TCP{Network: slow{n.Host("server"), rate}}, tcp: "server:1"}
		v.start()
		t.Cleanup(v.stop)
		r := channel.Recovery{PingInterval: 100 * time.Millisecond, PingTimeout: time.Second, AttemptTimeout: -1, HedgeQuantile: -1}
		ch := newChannel(t, channel.Config{Resolver: channel.Static(channel.Endpoint{Name: "a", TCP: v.tcp}), TCP: archon.TCP{Network: slow{n.Host("client"), rate}}, Recovery: r})
		if _, err := ask(limit(t), ch, echo, "x"); err != nil {
			t.Fatal(err)
		}
		rate.Store(20 << 20)
		ctx, began := limit(t), time.Now()
		var wg sync.WaitGroup
		for _, size := range []int{32 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20} {
			wg.Go(func() {
				if got, err := ask(ctx, ch, echo, strings.Repeat("x", size)); err != nil || len(got) != size {
					t.Errorf("%d of %d bytes: %v", len(got), size, err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took < 3*r.PingTimeout {
			t.Errorf("it took %v: the link is not slow", took)
		}
		if st := ch.Stats(); st.Attempts != st.Calls {
			t.Errorf("%+v, %v", st.CallStats, stats(ch, "a").Trouble)
		}
	})
}
