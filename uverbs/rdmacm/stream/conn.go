package stream

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm"
	"github.com/byteexpress/byteexpress/verbs"
)

const (
	messageBytes = 4096 // of one SEND
	receives     = 8    // posted
	sendSlot     = receives
	// maxHeld is how many bytes wait for Read before no more are taken, give or take what is
	// posted.
	maxHeld = 256 << 10
)

// Addr is the address of an end: IP address and port of the connection manager.
type Addr netip.AddrPort

// Network is "rdma_cm".
func (Addr) Network() string { return "rdma_cm" }

// String is what Dial takes.
func (a Addr) String() string { return netip.AddrPort(a).String() }

// Conn is one end of a stream, a [net.Conn].
type Conn struct {
	n      *Net
	link   link
	pd     verbs.PD
	in     cq.CQ // of receives; the pump's
	out    cq.CQ // of sends; of who holds writing
	pin    *mmio.Mapping
	region mr.Region
	q      qp.QP // the link's to close

	life    context.Context // ends with Close
	end     context.CancelFunc
	work    sync.WaitGroup // pump and watch
	writing chan struct{}  // held by a Write
	once    sync.Once

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced when a Read has to look again
	held      []byte        // arrived, not read
	room      chan struct{} // has an element when held got less
	err       error         // why nothing more arrives
	peerEnded bool          // what has arrived is all there is
	readBy    time.Time
	writeBy   time.Time
	broken    error // why nothing more can be written
}

// newConn makes what a connection needs before it is one.
func (n *Net) newConn() (c *Conn, err error) {
	c = &Conn{n: n, writing: make(chan struct{}, 1), changed: make(chan struct{}), room: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			c.release()
		}
	}()
	if c.pd, err = n.dev.AllocPD(); err != nil {
		return nil, err
	}
	if c.in, err = n.dev.CreateCQ(verbs.CQConfig{Entries: receives}); err != nil {
		return nil, err
	}
	if c.out, err = n.dev.CreateCQ(verbs.CQConfig{Entries: 1}); err != nil {
		return nil, err
	}
	if c.pin, err = mmio.Anonymous((receives + 1) * messageBytes); err != nil {
		return nil, err
	}
	c.region, err = c.pd.Register(c.pin.Bytes(), mr.LocalWrite)
	return c, err
}

// options make the connection's queue pair. Both sides have the same.
func (c *Conn) options() rdmacm.Options {
	return rdmacm.Options{
		MakeQP: c.makeQP, Ready: c.ready, Access: mr.LocalWrite, Private: []byte(Protocol),
		ResolveTimeout: c.n.timeout(), ConnectTimeout: c.n.timeout(),
	}
}

func (c *Conn) makeQP(_ context.Context, r rdmacm.Route) (qp.QP, error) {
	if name := c.n.dev.Info().Name; r.Device.Name != name || c.n.cfg.Port != 0 && int(r.Port) != c.n.cfg.Port {
		return nil, errors.Errorf("the way from %v to %v goes by %s port %d, and %s is in use: use an address of this device, or that device",
			r.Local.Addr(), r.Remote.Addr(), r.Device.Name, r.Port, name)
	}
	var err error
	c.q, err = c.pd.CreateQP(verbs.QPConfig{SendCQ: c.out, RecvCQ: c.in, Caps: qp.Caps{SendWR: 1, RecvWR: receives, SendSGE: 1, RecvSGE: 1}})
	return c.q, err
}

func (c *Conn) ready(qp.QP) error {
	for i := range receives {
		if err := c.postRecv(i); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) postRecv(slot int) error {
	_, err := c.q.PostRecv([]qp.RecvWR{{ID: uint64(slot), SGEs: c.sge(slot, messageBytes)}})
	return err
}

func (c *Conn) slot(i int) []byte { return c.pin.Bytes()[i*messageBytes:][:messageBytes] }

func (c *Conn) sge(slot, n int) []qp.SGE {
	return []qp.SGE{{Addr: c.region.Addr + uint64(slot*messageBytes), Length: uint32(n), LKey: c.region.LKey}}
}

// begin starts a connection that is up, or closes it.
func (c *Conn) begin() error {
	if got := c.link.Private(); string(got) != Protocol {
		_ = c.link.Close()
		c.release()
		return errors.Errorf("the peer speaks something else: its private data is %.40q, want %q: check address and port", got, Protocol)
	}
	c.work.Go(c.watch)
	c.work.Go(c.pump)
	return nil
}

// release gives back what newConn made.
func (c *Conn) release() error {
	c.end()
	var errs []error
	if c.in != nil {
		errs = append(errs, c.in.Close())
	}
	if c.out != nil {
		errs = append(errs, c.out.Close())
	}
	if c.region.Length > 0 {
		errs = append(errs, c.pd.Deregister(c.region))
	}
	if c.pin != nil {
		errs = append(errs, c.pin.Close())
	}
	if c.pd != nil {
		errs = append(errs, c.pd.Close())
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Close ends the stream at once: the peer reads what was written, and then [io.EOF]. A
// Read or Write that goes on returns [net.ErrClosed].
func (c *Conn) Close() error {
	err := error(net.ErrClosed)
	c.once.Do(func() {
		c.end()
		c.out.Wake()
		c.work.Wait()
		c.writing <- struct{}{} // and stays held
		err = c.link.Close()
		if c.gone() {
			err = nil // the peer went first
		}
		if e := c.release(); err == nil {
			err = e
		}
	})
	return err
}

func (c *Conn) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peerEnded || c.err != nil
}

// Route tells the addresses and the device.
func (c *Conn) Route() rdmacm.Route { return c.link.Route() }

// SGID is our GID on the way, zero if the kernel does not tell.
func (c *Conn) SGID() verbs.GID {
	r := c.link.Route()
	if r.SGID.IsZero() && r.Local.Addr().IsValid() {
		return verbs.GID(r.Local.Addr().As16())
	}
	return r.SGID
}

// LocalAddr is our [Addr].
func (c *Conn) LocalAddr() net.Addr { return Addr(c.link.Route().Local) }

// RemoteAddr is the peer's [Addr].
func (c *Conn) RemoteAddr() net.Addr { return Addr(c.link.Route().Remote) }

// watch waits for the peer's end.
func (c *Conn) watch() {
	err := c.link.Wait(c.life)
	switch {
	case c.life.Err() != nil:
		return
	case err != nil:
		c.stop(err)
	default:
		c.mu.Lock()
		c.peerEnded = true
		c.mu.Unlock()
	}
	c.in.Wake()
	c.out.Wake()
}

// stop ends reading.
func (c *Conn) stop(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.look()
	c.mu.Unlock()
}

// look makes Reads look again. c.mu is held.
func (c *Conn) look() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// pump takes what arrives, until the stream's end.
func (c *Conn) pump() {
	var got [receives]cq.Completion
	for armed := false; ; {
		c.mu.Lock()
		last, failed, full := c.peerEnded, c.err != nil, len(c.held) >= maxHeld
		c.mu.Unlock()
		switch {
		case failed, c.life.Err() != nil:
			return
		case full:
			select {
			case <-c.room:
			case <-c.life.Done():
			}
			continue
		}
		n, err := c.in.Poll(got[:])
		for i := 0; err == nil && i < n; i++ {
			err = c.arrived(&got[i])
		}
		switch {
		case err != nil:
		case n > 0:
			continue
		case last:
			err = io.EOF
		case !armed:
			err = c.in.Arm(false)
			armed = err == nil
		default:
			err, armed = c.in.Wait(c.life), false
		}
		if err != nil {
			c.stop(err)
		}
	}
}

// arrived keeps a message and posts its receive again.
func (c *Conn) arrived(w *cq.Completion) error {
	if err := w.Err(); err != nil {
		return fmt.Errorf("the connection failed: %w", err)
	}
	if w.ID >= receives || w.ByteLen > messageBytes {
		return errors.Errorf("completion of receive %d with %d bytes: the device is wrong", w.ID, w.ByteLen)
	}
	c.mu.Lock()
	c.held = append(c.held, c.slot(int(w.ID))[:w.ByteLen]...)
	c.look()
	c.mu.Unlock()
	return c.postRecv(int(w.ID))
}

// Read reads bytes of the stream; see [net.Conn]. After the peer closed it gives what
// was written, and then [io.EOF].
func (c *Conn) Read(b []byte) (int, error) {
	for {
		c.mu.Lock()
		changed, by := c.changed, c.readBy
		switch {
		case c.life.Err() != nil:
			c.mu.Unlock()
			return 0, net.ErrClosed
		case !by.IsZero() && !time.Now().Before(by):
			c.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case len(c.held) > 0 || len(b) == 0:
			n := copy(b, c.held)
			c.held = c.held[n:]
			c.mu.Unlock()
			select {
			case c.room <- struct{}{}:
			default:
			}
			return n, nil
		case c.err != nil:
			err := c.err
			c.mu.Unlock()
			return 0, err
		}
		c.mu.Unlock()
		expired, stop := timer(by)
		select {
		case <-changed:
		case <-expired:
		case <-c.life.Done():
		}
		stop()
	}
}

// timer gives a channel that tells when it is by; zero is never.
func timer(by time.Time) (<-chan time.Time, func() bool) {
	if by.IsZero() {
		return nil, func() bool { return false }
	}
	t := time.NewTimer(time.Until(by))
	return t.C, t.Stop
}

// Write writes bytes to the stream; see [net.Conn]. It returns when the peer's NIC has
// them. After a deadline that ended it nothing more can be written.
func (c *Conn) Write(b []byte) (n int, err error) {
	c.mu.Lock()
	by := c.writeBy
	c.mu.Unlock()
	expired, stop := timer(by)
	defer stop()
	select {
	case c.writing <- struct{}{}:
	case <-expired:
		return 0, os.ErrDeadlineExceeded
	case <-c.life.Done():
		return 0, net.ErrClosed
	}
	defer func() { <-c.writing }()
	for len(b) > 0 {
		if err := c.writable(); err != nil {
			return n, err
		}
		m := copy(c.slot(sendSlot), b)
		if _, err := c.q.PostSend([]qp.SendWR{{Opcode: qp.Send, Flags: qp.Signaled, SGEs: c.sge(sendSlot, m)}}); err != nil {
			return n, c.breaks(err)
		}
		if err := c.sent(); err != nil {
			return n, c.breaks(err)
		}
		n, b = n+m, b[m:]
	}
	return n, nil
}

func (c *Conn) breaks(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = err
	return err
}

// writable is why nothing can be written, nil if it can.
func (c *Conn) writable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.life.Err() != nil:
		return net.ErrClosed
	case c.broken != nil:
		return c.broken
	case c.peerEnded, c.err == io.EOF:
		return syscall.EPIPE
	case c.err != nil:
		return c.err
	case !c.writeBy.IsZero() && !time.Now().Before(c.writeBy):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// sent waits for the completion of the SEND that is outstanding.
func (c *Conn) sent() error {
	var got [1]cq.Completion
	for armed := false; ; {
		n, err := c.out.Poll(got[:])
		switch {
		case err != nil:
			return err
		case n > 0:
			if err := got[0].Err(); err != nil {
				return fmt.Errorf("the connection failed: %w", err)
			}
			return nil
		case !armed:
			if err := c.out.Arm(false); err != nil {
				return err
			}
			armed = true
			continue
		}
		if err := c.writable(); err != nil {
			return err
		}
		c.mu.Lock()
		by := c.writeBy
		c.mu.Unlock()
		ctx, cancel := c.life, context.CancelFunc(func() {})
		if !by.IsZero() {
			ctx, cancel = context.WithDeadline(c.life, by)
		}
		err = c.out.Wait(ctx)
		cancel()
		armed = false
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// SetDeadline sets both deadlines; see [net.Conn].
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline is that of [net.Conn].
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readBy = t
	c.look()
	return nil
}

// SetWriteDeadline is that of [net.Conn].
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeBy = t
	if c.life.Err() == nil {
		c.out.Wake()
	}
	return nil
}
