package testnet

import (
	"context"
	"math"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/errors"
)

// Net is the network. All methods may be called from any goroutine.
type Net struct {
	seed  uint64
	start time.Time

	mu        sync.Mutex
	changed   chan struct{} // closed when something below changes
	listeners map[string]*listener
	conns     map[*conn]struct{}
	lost      map[[2]string]time.Time // pairs of hosts, in both orders, since when
	frozen    map[string]bool
	ports     int
}

// New makes a network. Equal seeds give equal latencies.
func New(seed uint64) *Net {
	return &Net{seed: seed, start: time.Now(), changed: make(chan struct{}), listeners: map[string]*listener{},
		conns: map[*conn]struct{}{}, lost: map[[2]string]time.Time{}, frozen: map[string]bool{}}
}

// Host is the network as a host of that name sees it; it dials and listens. Its addresses
// are "name:port".
func (n *Net) Host(name string) Host { return Host{n, name} }

// Host is one host, or rather one process on it.
type Host struct {
	net  *Net
	name string
}

// Lose loses every packet between two hosts, or no longer. As TCP does, what was lost
// comes later, when it is sent again.
func (n *Net) Lose(a, b string, lose bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	since := n.lost[[2]string{a, b}]
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		if lose {
			n.lost[pair] = time.Now()
		} else {
			delete(n.lost, pair)
		}
	}
	for c := range n.conns {
		if !lose && c.between(a, b) {
			c.in.resend(n.resent(since, c.peer.host, c.host))
		}
	}
	n.change()
}

// resent is when what was lost since a time comes: TCP waits longer and longer between
// its tries, so that it may be as much later again.
func (n *Net) resent(since time.Time, from, to string) time.Time {
	out := time.Since(since)
	return time.Now().Add(min(time.Duration(n.Draw(from, to)*float64(out)), 2*time.Second))
}

// Freeze stops what a host's process receives and sends, as SIGSTOP would: the kernel
// keeps what comes, and takes connections. Freeze with false lets it go on.
func (h Host) Freeze(freeze bool) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.net.frozen[h.name] = freeze
	h.net.change()
}

// Kill ends the host's process: its listeners are gone, peers see their connections reset.
// What the process still does with either fails. A later Listen is of a new process.
func (h Host) Kill() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	for addr, l := range h.net.listeners {
		if l.host == h.name {
			l.closed = true
			delete(h.net.listeners, addr)
		}
	}
	for c := range h.net.conns {
		if c.host == h.name {
			c.end(syscall.ECONNRESET)
		}
	}
	h.net.frozen[h.name] = false
	h.net.change()
}

// change wakes all who wait. The caller holds mu.
func (n *Net) change() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// Draw gives a number in [0, 1) that follows from the seed, two names and the moment.
func (n *Net) Draw(from, to string) float64 {
	x := n.seed ^ uint64(time.Since(n.start))*0x9e3779b97f4a7c15
	for _, c := range []byte(from + ">" + to) {
		x = (x ^ uint64(c)) * 0x100000001b3 // FNV's prime
	}
	x ^= x >> 31
	x *= 0xbf58476d1ce4e5b9 // of SplitMix64, as are the shifts
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}

// latency is how long a packet takes: 40 us and exponentially more, 20 us on average.
func (n *Net) latency(from, to string) time.Duration {
	return 40*time.Microsecond - time.Duration(20e3*math.Log1p(-n.Draw(from, to)))
}

// Listen takes connections at "name:port"; port 0 takes a free one.
func (h Host) Listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != h.name {
		return nil, errors.Errorf("host %s does not have the address %q", h.name, addr)
	}
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if port == "0" {
		h.net.ports++
		addr = net.JoinHostPort(host, strconv.Itoa(h.net.ports))
	}
	if h.net.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "test", Addr: address(addr), Err: syscall.EADDRINUSE}
	}
	l := &listener{net: h.net, host: h.name, addr: address(addr)}
	h.net.listeners[addr] = l
	return l, nil
}

// Dial connects to a listener.
func (h Host) Dial(ctx context.Context, addr string) (net.Conn, error) {
	n := h.net
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	fail := func(err error) error {
		return &net.OpError{Op: "dial", Net: "test", Addr: address(addr), Err: err}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	at := time.Now().Add(n.latency(h.name, host) + n.latency(host, h.name))
	for {
		since, lost := n.lost[[2]string{h.name, host}]
		if lost {
			at = time.Time{}
		} else if at.IsZero() {
			at = n.resent(since, h.name, host)
		}
		if !lost && !time.Now().Before(at) {
			break
		}
		n.wait(n.changed, ctx.Done(), at)
		if err := ctx.Err(); err != nil {
			return nil, fail(err)
		}
	}
	l := n.listeners[addr]
	if l == nil {
		return nil, fail(syscall.ECONNREFUSED)
	}
	n.ports++
	a := newConn(n, h.name, address(net.JoinHostPort(h.name, strconv.Itoa(n.ports))))
	b := newConn(n, host, l.addr)
	a.peer, b.peer = b, a
	n.conns[a], n.conns[b] = struct{}{}, struct{}{}
	l.queue = append(l.queue, b)
	n.change()
	return a, nil
}

// wait waits for one of two wakes, or a time unless that is zero. The caller holds mu,
// which is not held meanwhile.
func (n *Net) wait(wake, other <-chan struct{}, at time.Time) {
	n.mu.Unlock()
	defer n.mu.Lock()
	var timer <-chan time.Time
	if !at.IsZero() {
		timer = time.After(time.Until(at))
	}
	select {
	case <-wake:
	case <-other:
	case <-timer:
	}
}

// address is a net.Addr.
type address string

func (address) Network() string  { return "test" }
func (a address) String() string { return string(a) }
