package control

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/pkg/errors"
)

// maxFrame is the longest message in bytes: room for the addresses of some
// thousand queue pairs.
const maxFrame = 1 << 20

// maxFirst is the same of a peer's first message, its hello: a stranger cannot make
// us take more memory.
const maxFirst = 64 << 10

var (
	// ErrTimeout is wrapped when a peer did not answer in time.
	ErrTimeout = errors.New("no answer in time")
	// ErrNotBebench is wrapped when the peer speaks something else.
	ErrNotBebench = errors.New("the peer does not speak bebench's protocol")
	// ErrPeerFailed is wrapped when the peer says why it cannot go on.
	ErrPeerFailed = errors.New("the peer gave up")
	// ErrGone is wrapped when the peer closed the connection in the middle.
	ErrGone = errors.New("the peer closed the connection")
)

// StepError is a step of the protocol that did not succeed.
type StepError struct {
	Step string // "hello"
	Peer string // "192.0.2.7:18515"
	Err  error
}

// Error names step, peer and cause.
func (e *StepError) Error() string {
	return "step " + e.Step + " with " + e.Peer + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// Conn is one end of a control connection. One goroutine may send while another
// receives. It is closed by Close or by the end of the context it was made with.
type Conn struct {
	c     net.Conn
	r     *bufio.Reader
	ctx   context.Context
	stop  func() bool
	limit time.Duration
	begun bool // a whole message has arrived
}

// New makes a control connection of c. Each step may take limit; the end of ctx
// ends every step.
func New(ctx context.Context, c net.Conn, limit time.Duration) *Conn {
	return &Conn{
		c: c, r: bufio.NewReader(c), ctx: ctx, limit: limit,
		stop: context.AfterFunc(ctx, func() { c.Close() }),
	}
}

// Dial connects to a server at addr, "host:port".
func Dial(ctx context.Context, addr string, limit time.Duration) (*Conn, error) {
	c, err := DialTCP(ctx, addr, limit)
	if err != nil {
		return nil, err
	}
	return New(ctx, c, limit), nil
}

// DialTCP connects to a server that may speak another protocol.
func DialTCP(ctx context.Context, addr string, limit time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: limit}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, &StepError{"connect", addr, errors.WithMessage(err, "is the server running there, with the same -p?")}
	}
	return c, nil
}

// Within makes the connection's context ctx instead of the one that it was made
// with.
func (c *Conn) Within(ctx context.Context) *Conn {
	c.stop()
	return &Conn{
		c: c.c, r: c.r, ctx: ctx, limit: c.limit, begun: c.begun, stop: context.AfterFunc(ctx, func() { c.c.Close() }),
	}
}

// Peer is the other end's TCP address.
func (c *Conn) Peer() string { return c.c.RemoteAddr().String() }

// PeerHost is the other end's IP address, with a zone if it has one.
func (c *Conn) PeerHost() string {
	host, _, _ := net.SplitHostPort(c.Peer())
	return host
}

// LocalHost is this end's IP address towards the peer.
func (c *Conn) LocalHost() string {
	host, _, _ := net.SplitHostPort(c.c.LocalAddr().String())
	return host
}

// Limit is the time limit of a step.
func (c *Conn) Limit() time.Duration { return c.limit }

// Close ends the connection.
func (c *Conn) Close() error {
	c.stop()
	return c.c.Close()
}

type frame struct {
	Step string          `json:"step"`
	Body json.RawMessage `json:"body,omitempty"`
}

// Send sends one message of the named step.
func (c *Conn) Send(step string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return c.fail(step, err)
	}
	b, err := json.Marshal(frame{step, raw})
	if err != nil {
		return c.fail(step, err)
	}
	if len(b) > maxFrame {
		return c.fail(step, errors.Errorf("message of %d bytes, at most %d: use fewer queue pairs", len(b), maxFrame))
	}
	b = append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	_ = c.c.SetWriteDeadline(time.Now().Add(c.limit))
	_, err = c.c.Write(b)
	return c.fail(step, err)
}

// stepFailed may come instead of any message: the sender cannot go on.
const stepFailed = "failed"

// stepAlive comes now and then during a session, and may be late.
const stepAlive = "alive"

// Fail tells the peer why this end cannot go on, whichever step it waits for.
func (c *Conn) Fail(err error) { _ = c.Send(stepFailed, err.Error()) }

// Recv receives the message of the named step into body. A message of another
// step is an error that names both.
func (c *Conn) Recv(step string, body any) error {
	deadline := time.Now().Add(c.limit)
	got, raw, err := c.next(deadline)
	for err == nil && got == stepAlive { // left over from a session
		got, raw, err = c.next(deadline)
	}
	if err != nil {
		return c.fail(step, err)
	}
	if got != step {
		return c.fail(step, errors.Errorf("the peer is at step %q: the two programs differ", got))
	}
	return c.fail(step, decode(raw, body))
}

func decode(raw json.RawMessage, body any) error {
	if body == nil {
		return nil
	}
	return errors.Wrap(json.Unmarshal(raw, body), "message")
}

// next reads one message.
func (c *Conn) next(deadline time.Time) (string, json.RawMessage, error) {
	_ = c.c.SetReadDeadline(deadline)
	head, err := c.r.Peek(4)
	if err != nil {
		return "", nil, err
	}
	n, most := binary.BigEndian.Uint32(head), uint32(maxFrame)
	if !c.begun {
		most = maxFirst
	}
	if n < 2 || n > most {
		return "", nil, fmt.Errorf("%w: first bytes %q", ErrNotBebench, head)
	}
	_, _ = c.r.Discard(4)
	b := make([]byte, n)
	if _, err := io.ReadFull(c.r, b); err != nil {
		return "", nil, err
	}
	var f frame
	if err := json.Unmarshal(b, &f); err != nil {
		if !c.begun {
			err = fmt.Errorf("%w: %v", ErrNotBebench, err)
		}
		return "", nil, err
	}
	c.begun = true
	if f.Step == stepFailed {
		var why string
		if err := decode(f.Body, &why); err != nil {
			return "", nil, err
		}
		return "", nil, fmt.Errorf("%w: %s", ErrPeerFailed, Printable(why))
	}
	return f.Step, f.Body, nil
}

// Printable replaces what a peer may send to play with our terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

func (c *Conn) fail(step string, err error) error { return Failed(c.ctx, step, c.Peer(), c.limit, err) }

// Failed makes the error of a step with a peer, within a time limit and a context. It
// puts the causes that users meet into words; nil stays nil.
func Failed(ctx context.Context, step, peer string, limit time.Duration, err error) error {
	var s *StepError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &s):
		return err
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("%w: limit %v (--timeout)", ErrTimeout, limit)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(err.Error(), "reset by peer"), strings.Contains(err.Error(), "broken pipe"):
		err = ErrGone
	}
	return &StepError{step, peer, err}
}
