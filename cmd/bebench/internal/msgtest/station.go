package msgtest

import (
	"context"
	"strconv"
	"syscall"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/verbs"
)

// station is one end: the transport and its sockets.
type station struct {
	transport
	sockets []socket // by number
}

// openStation opens the transport.
func openStation(dev verbs.Device, p *Params) (*station, error) {
	t, err := p.open(dev)
	if err != nil {
		return nil, err
	}
	return &station{transport: t}, nil
}

// connect makes the sockets: the server tells its address and accepts, the client
// dials.
func (s *station) connect(ctx context.Context, c *control.Conn, p *Params, client bool) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	s.sockets = make([]socket, p.Sockets)
	if !client {
		return s.accept(ctx, giveUp, c, p)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limit(), errors.Wrap(control.ErrTimeout, "step sockets with "+c.Peer()))
	defer cancel()
	var addr string
	if err := c.Recv("address", &addr); err != nil {
		return err
	}
	for i := range s.sockets {
		sock, err := s.dial(ctx, addr, i)
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) {
			err = c.Recv("connected", nil) // it listens no more, and says why
		}
		if err != nil {
			return err
		}
		s.sockets[i] = sock
	}
	if err := c.Send("connected", nil); err != nil {
		return err
	}
	return c.Recv("connected", nil)
}

// accept takes the client's sockets until the client says that it is connected, or
// why it is not.
func (s *station) accept(ctx context.Context, giveUp context.CancelCauseFunc, c *control.Conn, p *Params) (err error) {
	addr, err := s.listen(c.LocalHost())
	if err != nil {
		return err
	}
	if err := c.Send("address", addr); err != nil {
		return err
	}
	connected := make(chan error, 1)
	go func() {
		err := c.Recv("connected", nil)
		if err != nil {
			giveUp(err)
		}
		connected <- err
	}()
	for range p.Sockets {
		sock, number, err := s.transport.accept(ctx)
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return err
		}
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= p.Sockets || s.sockets[i] != nil {
			_ = sock.Close()
			return errors.Errorf("step sockets with %s: socket %q is not one of %d", c.Peer(), number, p.Sockets)
		}
		s.sockets[i] = sock
	}
	if err := <-connected; err != nil {
		return err
	}
	return c.Send("connected", nil)
}

// close gives everything back and says what could not be.
func (s *station) close() error {
	for _, sock := range s.sockets {
		if sock != nil {
			_ = sock.Close()
		}
	}
	return s.transport.close()
}
