package netconn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/nettest"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/be/netconn"
	"github.com/byteexpress/byteexpress/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newNode makes a node on a simulated device; closing it at the end shows that no
// buffer is left.
func newNode(t testing.TB, f *sim.Fabric, name string, cfg be.Config) *be.Node {
	t.Helper()
	dev, err := f.NewDevice(name, sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	rdma, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	n, err := be.NewNode(rdma, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close node: %v", err)
		}
		if err := rdma.Close(); err != nil {
			t.Errorf("close context: %v", err)
		}
	})
	return n
}

// pair is two nodes, the second one's connections go to the first one's listener.
type pair struct {
	nodes    [2]*be.Node
	listener *netconn.Listener
}

func newPair(t testing.TB, cfg be.Config) *pair {
	f := sim.NewFabric(sim.Config{})
	p := &pair{nodes: [2]*be.Node{newNode(t, f, "sim0", cfg), newNode(t, f, "sim1", cfg)}}
	var err error
	if p.listener, err = netconn.Listen(p.nodes[0], "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *pair) connect() (server, client net.Conn, err error) {
	d := netconn.Dialer{Node: p.nodes[1]}
	if client, err = d.DialContext(context.Background(), "be", p.listener.Addr().String()); err != nil {
		return nil, nil, err
	}
	server, err = p.listener.Accept()
	return server, client, err
}

// conns connects; both ends are closed when the test ends.
func (p *pair) conns(t testing.TB) (server, client *netconn.Conn) {
	t.Helper()
	s, c, err := p.connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); c.Close() })
	return s.(*netconn.Conn), c.(*netconn.Conn)
}

func TestNettest(t *testing.T) {
	for name, cfg := range map[string]be.Config{"defaults": {}, "backlog of 1": {Backlog: 1}, "two workers": {Workers: 2}, "small messages": {MaxMessage: 100, EagerBytes: 256}} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, cfg)
			nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
				s, c, err := p.connect()
				return s, c, func() { s.Close(); c.Close() }, err
			})
		})
	}
}

func TestHalfClose(t *testing.T) {
	p := newPair(t, be.Config{})
	s, c := p.conns(t)
	c.Write([]byte("question"))
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("more")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write after CloseWrite: %v", err)
	}
	if b, err := io.ReadAll(s); err != nil || string(b) != "question" {
		t.Errorf("read %q, %v", b, err)
	}
	if n, err := s.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("read after the end: %d, %v", n, err)
	}
	s.Write([]byte("answer"))
	s.Close()
	if b, err := io.ReadAll(c); err != nil || string(b) != "answer" {
		t.Errorf("read %q, %v", b, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
	if err := c.SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("deadline after close: %v", err)
	}
}

// TestBrokenStreamIsNoEOF: a peer whose node ends without closing the stream.
func TestBrokenStreamIsNoEOF(t *testing.T) {
	p := newPair(t, be.Config{})
	_, c := p.conns(t)
	c.Write([]byte("half a"))
	s2, c2 := p.conns(t)
	if err := p.nodes[1].Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(s2); !errors.Is(err, io.ErrUnexpectedEOF) || len(b) != 0 {
		t.Errorf("read %q, %v", b, err)
	}
	if _, err := c2.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read on a closed node: %v", err)
	}
	for {
		if _, err := s2.Write(make([]byte, 10)); err != nil {
			if !errors.Is(err, syscall.EPIPE) {
				t.Errorf("write to a closed node: %v", err)
			}
			return
		}
	}
}

// TestCloseSendsWhatWasWritten: more than the peer takes in one go.
func TestCloseSendsWhatWasWritten(t *testing.T) {
	p := newPair(t, be.Config{Backlog: 4, Linger: time.Minute})
	s, c := p.conns(t)
	data := bytes.Repeat([]byte("0123456789"), netconn.SendBuffer/20)
	if n, err := c.Write(data); n != len(data) || err != nil {
		t.Fatalf("write: %d, %v", n, err)
	}
	c.Close()
	if b, err := io.ReadAll(s); err != nil || !bytes.Equal(b, data) {
		t.Errorf("%d bytes, %v; want %d", len(b), err, len(data))
	}
}

// TestCutByLinger: what Linger cuts off does not look like the end.
func TestCutByLinger(t *testing.T) {
	p := newPair(t, be.Config{Backlog: 1, Linger: time.Millisecond})
	s, c := p.conns(t)
	if _, err := c.Write(make([]byte, netconn.SendBuffer/2)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	<-s.Socket().Done()
	if b, err := io.ReadAll(s); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// TestNothingBehindWhatIsMissing: a chunk that Linger cuts off is the end of what is read,
// though what was written after it has arrived.
func TestNothingBehindWhatIsMissing(t *testing.T) {
	p := newPair(t, be.Config{PoolBytes: 64 << 20, Linger: time.Millisecond})
	s, c := p.conns(t)
	n := s.Socket().Node()
	var all [][]byte
	for _, size := range []int{8 << 20, 1 << 20, 32 << 10} {
		for b, err := n.Alloc(size); err == nil; b, err = n.Alloc(size) {
			all = append(all, b)
		}
	}
	for _, b := range [][]byte{make([]byte, 64<<10), []byte("behind")} {
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	<-s.Socket().Done()
	for _, b := range all {
		n.Free(b)
	}
	if b, err := io.ReadAll(s); len(b) > 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestDeadlineMovedAfterItPassed(t *testing.T) {
	p := newPair(t, be.Config{})
	s, c := p.conns(t)
	s.SetReadDeadline(time.Unix(1, 0))
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	s.SetReadDeadline(time.Now().Add(time.Hour))
	s.SetReadDeadline(time.Time{})
	c.Write([]byte("x"))
	if n, err := s.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("read: %d, %v", n, err)
	}
	// What has come is not given to a Read whose time is over.
	c.Write([]byte("y"))
	s.SetReadDeadline(time.Unix(1, 0))
	if n, err := s.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %d, %v", n, err)
	}
}

// TestCopies: io.Copy into, out of and between Conns.
func TestCopies(t *testing.T) {
	p := newPair(t, be.Config{})
	s, c := p.conns(t)
	s2, c2 := p.conns(t)
	data := make([]byte, 3<<20+17)
	for i := range data {
		data[i] = byte(i >> 8 * i)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		// Without the reader's own WriteTo, so that ReadFrom runs.
		if n, err := io.Copy(c, struct{ io.Reader }{bytes.NewReader(data)}); n != int64(len(data)) || err != nil {
			t.Errorf("into: %d, %v", n, err)
		}
		c.CloseWrite()
	})
	wg.Go(func() {
		if n, err := io.Copy(s2, s); n != int64(len(data)) || err != nil { // a proxy
			t.Errorf("between: %d, %v", n, err)
		}
		s2.CloseWrite()
	})
	var got bytes.Buffer
	if n, err := io.Copy(struct{ io.Writer }{&got}, c2); n != int64(len(data)) || err != nil {
		t.Errorf("out of: %d, %v", n, err)
	}
	wg.Wait()
	if !bytes.Equal(got.Bytes(), data) {
		t.Error("the bytes differ")
	}
}

// TestCloseDuringCopies: a half-read buffer of a closed Conn goes back (the node's
// Close tells), and a WriteTo that is stuck in its writer does not hold Close up.
func TestCloseDuringCopies(t *testing.T) {
	p := newPair(t, be.Config{})
	s, c := p.conns(t)
	c.Write(make([]byte, 1000))
	if _, err := io.ReadFull(s, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	stuck, gone := make(chan struct{}), make(chan error)
	go func() {
		_, err := s.WriteTo(writerFunc(func(b []byte) (int, error) {
			stuck <- struct{}{}
			<-stuck
			return 1, nil
		}))
		gone <- err
	}()
	<-stuck
	s.Close()
	close(stuck)
	if err := <-gone; !errors.Is(err, net.ErrClosed) {
		t.Errorf("WriteTo of a closed Conn: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestClosedListener(t *testing.T) {
	p := newPair(t, be.Config{})
	if p.listener.Addr().Network() != "be" {
		t.Errorf("network %q", p.listener.Addr().Network())
	}
	done := make(chan error)
	go func() {
		_, err := p.listener.Accept()
		done <- err
	}()
	p.listener.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	if _, _, err := p.connect(); err == nil {
		t.Error("dialed a closed listener")
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	p := newPair(t, be.Config{})
	s, c := p.conns(t)
	for _, size := range []int{64, 8192, 200000} {
		out, in := make([]byte, size), make([]byte, size)
		op := func() {
			if _, err := c.Write(out); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(s, in); err != nil {
				t.Fatal(err)
			}
		}
		for range 300 {
			op()
		}
		if n := testing.AllocsPerRun(500, op); n != 0 {
			t.Errorf("%d bytes: %v allocations a write and read", size, n)
		}
	}
}

// BenchmarkStream writes chunks one way as fast as they are read.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			p := newPair(b, be.Config{})
			s, c := p.conns(b)
			done := make(chan int64)
			go func() {
				n, _ := io.Copy(io.Discard, s)
				done <- n
			}()
			out := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Write(out); err != nil {
					b.Fatal(err)
				}
			}
			c.CloseWrite()
			<-done
		})
	}
}

// TestDialNetwork: only networks of streams are dialed.
func TestDialNetwork(t *testing.T) {
	var d netconn.Dialer // it has no node: nothing is dialed
	for _, network := range []string{"udp", "unix", ""} {
		var unknown net.UnknownNetworkError
		if c, err := d.DialContext(t.Context(), network, "127.0.0.1:1"); c != nil || !errors.As(err, &unknown) {
			t.Errorf("%q: %v, %v", network, c, err)
		}
	}
}
