package archon

import (
	"context"
	"net"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be"
)

// TCP is the transport over TCP. One connection carries all messages of a socket,
// each behind a 4-byte little-endian length. The zero value works; it is not
// changed after use.
type TCP struct {
	// Network makes the connections; nil: the system's, be.TCP.
	Network be.Bootstrap
	// MaxMessage is the longest message that is taken, in bytes; 0: 64 MiB. It bounds
	// what a peer can make this side allocate for it.
	MaxMessage int
	// MaxQueued bounds the bytes that wait to be sent on a socket, beyond one
	// message; 0: 256 MiB.
	MaxQueued int
	// HelloTimeout bounds the exchange that begins a connection; 0: 10 s.
	HelloTimeout time.Duration
	// MessageTimeout bounds how long a message that has begun may take to arrive,
	// for each MiB of it that is waited for; its connection is closed then. Between messages
	// a connection may be idle for ever. 0: 30 s.
	MessageTimeout time.Duration
	// MaxConns bounds the connections of a listener; more are refused with that as
	// the reason. 0: 65536.
	MaxConns int
}

// Defaults of TCP.
const (
	defaultMaxMessage   = 64 << 20
	defaultMaxQueued    = 256 << 20
	defaultHelloTimeout = 10 * time.Second
	defaultMessageTime  = 30 * time.Second
	defaultMaxConns     = 65536
	minMaxMessage       = 4 << 10 // a header and any detail fit
)

func (t TCP) withDefaults() (TCP, error) {
	if t.Network == nil {
		t.Network = be.TCP{}
	}
	if t.MaxMessage == 0 {
		t.MaxMessage = defaultMaxMessage
	}
	if t.MaxQueued == 0 {
		t.MaxQueued = defaultMaxQueued
	}
	if t.HelloTimeout == 0 {
		t.HelloTimeout = defaultHelloTimeout
	}
	if t.MessageTimeout == 0 {
		t.MessageTimeout = defaultMessageTime
	}
	if t.MaxConns == 0 {
		t.MaxConns = defaultMaxConns
	}
	if int64(t.MaxMessage) < minMaxMessage || int64(t.MaxMessage) > 1<<31-1 {
		return t, errors.Errorf("tcp: longest message of %d bytes, must be %d to %d", t.MaxMessage, minMaxMessage, 1<<31-1)
	}
	if t.MaxQueued < 0 || t.HelloTimeout < 0 || t.MessageTimeout < 0 || t.MaxConns < 0 {
		return t, errors.Errorf("tcp: negative queue bound %d, hello timeout %v, message timeout %v or connections %d",
			t.MaxQueued, t.HelloTimeout, t.MessageTimeout, t.MaxConns)
	}
	return t, nil
}

// Dial connects to a TCP listener of this package at "host:port".
func (t TCP) Dial(ctx context.Context, addr, service string) (Socket, error) {
	t, err := t.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := checkService(service); err != nil {
		return nil, errors.WithMessage(err, "tcp")
	}
	conn, err := t.Network.Dial(ctx, addr)
	if err != nil {
		return nil, errors.WithMessage(err, "tcp")
	}
	peerMax, err := t.greet(ctx, conn, service)
	if err != nil {
		conn.Close()
		return nil, errors.WithMessagef(err, "tcp: hello with %s", addr)
	}
	return newTCPSocket(t, conn, service, peerMax, nil), nil
}

// greet does the dialer's part of the hello.
func (t TCP) greet(ctx context.Context, conn net.Conn, service string) (peerMax int, err error) {
	deadline := time.Now().Add(t.HelloTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	conn.SetDeadline(deadline)
	defer conn.SetDeadline(time.Time{})
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() && err == nil {
			err = ctx.Err() // the deadline in the past may still be about to be set
		}
	}()
	if _, err := conn.Write(appendHello(nil, hello{max: uint32(t.MaxMessage), service: service})); err != nil {
		return 0, err
	}
	max, err := readWelcome(conn)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return int(max), err
}

// Listen takes connections at "host:port".
func (t TCP) Listen(addr string) (Listener, error) {
	t, err := t.withDefaults()
	if err != nil {
		return nil, err
	}
	l, err := t.Network.Listen(addr)
	if err != nil {
		return nil, errors.WithMessage(err, "tcp")
	}
	return newTCPListener(t, l), nil
}
