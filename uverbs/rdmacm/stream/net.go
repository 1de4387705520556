package stream

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm"
	"github.com/byteexpress/byteexpress/verbs"
)

// Protocol is the private data of both sides.
const Protocol = "byteexpress stream/1"

// DefaultTimeout is how long each step of a connection may take: to resolve the
// address, to resolve the route, and the peer's answer.
const DefaultTimeout = 10 * time.Second

// Config says how streams are made. The zero value takes every default.
type Config struct {
	Port    int           // of the device, that connections may go through; 0: any
	Timeout time.Duration // of one step of a connection; 0 is DefaultTimeout
}

// Net makes streams over one device. Its methods may be called from any goroutine.
type Net struct {
	dev verbs.Context
	cfg Config
	cm  manager
}

// New makes a network of an opened device of the kernel. The context stays the
// caller's, to close after all streams. Another device has no connection manager: the
// error is a [verbs.UnsupportedError].
func New(dev verbs.Context, cfg Config) (*Net, error) {
	name := dev.Info().Name
	devs, err := (&uverbs.System{}).Devices()
	for _, d := range devs {
		if d.Name == name {
			return &Net{dev: dev, cfg: cfg, cm: kernel{}}, nil
		}
	}
	if err == nil || errors.Is(err, verbs.ErrUnsupported) {
		err = &verbs.UnsupportedError{Feature: "RDMA CM", Missing: name + ", which is not a device of the kernel"}
	}
	return nil, err
}

// Dial connects to a listener at "host:port", where host is an IP address, with a zone
// if it is link-local, or a name, and port a number. The address must be that of an
// RDMA interface which our device reaches.
func (n *Net) Dial(ctx context.Context, addr string) (net.Conn, error) {
	to, err := resolve(ctx, addr)
	if err != nil {
		return nil, err
	}
	for _, a := range to {
		var c *Conn
		if c, err = n.dial(ctx, a); err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

func (n *Net) dial(ctx context.Context, addr netip.AddrPort) (*Conn, error) {
	c, err := n.newConn()
	if err != nil {
		return nil, err
	}
	c.link, err = n.cm.Dial(ctx, addr, c.options())
	if err != nil {
		c.release()
		return nil, err
	}
	if err := c.begin(); err != nil {
		return nil, fmt.Errorf("rdma_cm: connect %v: %w", addr, err)
	}
	return c, nil
}

// resolve gives the addresses that a name stands for, at least one.
func resolve(ctx context.Context, addr string) ([]netip.AddrPort, error) {
	fail := func(err error) error { return errors.Wrapf(err, "rdma_cm: address %q", addr) }
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fail(err)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, fail(errors.Errorf("port %q: must be a number from 0 to 65535", service))
	}
	if host == "" {
		return []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port))}, nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(ip.Unmap(), uint16(port))}, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fail(err)
	}
	var out []netip.AddrPort
	for _, ip := range ips {
		out = append(out, netip.AddrPortFrom(ip.Unmap(), uint16(port)))
	}
	if len(out) == 0 {
		return nil, fail(errors.New("no IP address"))
	}
	return out, nil
}

// manager is the connection manager, of the kernel or a test's.
type manager interface {
	Dial(ctx context.Context, addr netip.AddrPort, o rdmacm.Options) (link, error)
	Listen(addr netip.AddrPort) (requests, error)
}

// link is a connection of a manager's.
type link interface {
	Route() rdmacm.Route
	Private() []byte
	Wait(ctx context.Context) error
	Close() error
}

// requests is a manager's listener.
type requests interface {
	Addr() netip.AddrPort
	Next(ctx context.Context) (request, error)
	Close() error
}

type request interface {
	Accept(ctx context.Context, o rdmacm.Options) (link, error)
	Reject(private []byte) error
}

// kernel is the manager of the kernel that runs.
type kernel struct{}

func (kernel) Dial(ctx context.Context, addr netip.AddrPort, o rdmacm.Options) (link, error) {
	c, err := rdmacm.Dial(ctx, addr, o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (kernel) Listen(addr netip.AddrPort) (requests, error) {
	l, err := rdmacm.Listen(addr)
	if err != nil {
		return nil, err
	}
	return kernelRequests{l}, nil
}

type kernelRequests struct{ *rdmacm.Listener }

func (k kernelRequests) Next(ctx context.Context) (request, error) {
	r, err := k.Listener.Next(ctx)
	if err != nil {
		return nil, err
	}
	return kernelRequest{r}, nil
}

type kernelRequest struct{ *rdmacm.Request }

func (k kernelRequest) Accept(ctx context.Context, o rdmacm.Options) (link, error) {
	c, err := k.Request.Accept(ctx, o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (n *Net) timeout() time.Duration { return cmp.Or(n.cfg.Timeout, DefaultTimeout) }
