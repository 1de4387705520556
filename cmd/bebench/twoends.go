package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/perftest"
)

// aboutEnds is the help on who is which end.
const aboutEnds = "Without a host this is the server, with one the client; on sim: and with --local both ends run in this process.\n" +
	"Results, JSON files and thresholds are the client's."

// twoEnds runs a test that has a server and a client end.
type twoEnds struct {
	e     *env
	peer  *peerFlags
	hello control.Hello
	// serve runs the server's end of one agreed test, measure the client's.
	serve   func(ctx context.Context, c *control.Conn) error
	measure func(ctx context.Context, c *control.Conn) error
	// foreign plays either end against a program of perftest, instead of all that.
	foreign func(ctx context.Context, c *perftest.Conn) error
}

// run plays the role.
func (t *twoEnds) run(m mode, hosts []string) error {
	switch m {
	case client:
		return t.client(net.JoinHostPort(hosts[0], strconv.Itoa(t.peer.port)))
	case server:
		return t.server()
	}
	return t.local()
}

func (t *twoEnds) client(addr string) error {
	if t.foreign != nil {
		nc, err := control.DialTCP(t.e.soft, addr, time.Duration(t.peer.timeout))
		if err != nil {
			return err
		}
		return t.withPerftest(t.e.hard, nc, true, nil)
	}
	c, err := control.Dial(t.e.soft, addr, time.Duration(t.peer.timeout))
	if err != nil {
		return err
	}
	defer c.Close()
	c = c.Within(t.e.hard)
	if err := c.Greet(t.hello); err != nil {
		return err
	}
	return t.measure(t.e.hard, c)
}

func (t *twoEnds) server() error {
	fmt.Fprintf(t.e.stderr, "bebench: %s: the server, as no host is given; --local runs both ends here\n", t.hello.Command)
	return serveClients(t.e, t.newServer(t.peer.once), t.peer.port, "client", "done")
}

// serveClients runs a server on a TCP port. It tells people that it waits, and of each
// client: what it is called, and how it ended, well or not.
func serveClients(e *env, s *control.Server, port int, client, well string) error {
	ln, err := control.Listen(":" + strconv.Itoa(port))
	if err != nil {
		return err
	}
	s.Ended = func(peer string, err error) {
		how := well
		if err != nil {
			how = err.Error()
		}
		fmt.Fprintf(e.stderr, "bebench: %s %s: %s\n", client, peer, how)
	}
	fmt.Fprintf(e.stderr, "bebench: %s: waiting for a client on port %d\n", s.Hello.Command, port)
	return s.Run(e.soft, e.hard, ln)
}

func (t *twoEnds) newServer(once bool) *control.Server {
	s := &control.Server{Hello: t.hello, Limit: time.Duration(t.peer.timeout), Once: once, Test: t.serve}
	if t.foreign != nil {
		s.Foreign = func(ctx context.Context, nc net.Conn, claim func() string) error {
			return t.withPerftest(ctx, nc, false, claim)
		}
	}
	return s
}

// withPerftest greets a program of perftest and plays one end of a test with it.
func (t *twoEnds) withPerftest(ctx context.Context, nc net.Conn, client bool, claim func() (refused string)) error {
	c := perftest.New(ctx, nc, time.Duration(t.peer.timeout), client)
	defer c.Close()
	if _, err := c.Hello(); err != nil {
		return err
	}
	if claim != nil {
		if refused := claim(); refused != "" {
			return errors.WithMessage(control.ErrRefused, refused)
		}
	}
	return t.foreign(ctx, c)
}

// local runs both ends over a loopback connection in this process.
func (t *twoEnds) local() error {
	ln, err := control.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.e.soft)
	go func() { ended <- t.newServer(true).Run(ctx, t.e.hard, ln) }()
	err = t.client(ln.Addr().String())
	// A client that did not get as far as a test leaves the server waiting.
	stop()
	if serverErr := <-ended; err == nil {
		err = serverErr
	}
	return err
}
