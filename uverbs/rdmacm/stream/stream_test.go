package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm/stream"
	"github.com/byteexpress/byteexpress/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits before it fails.
const patience = 60 * time.Second

// join connects a to a listener of b.
func join(t *testing.T, a, b *fakeNet) (dialed, accepted net.Conn) {
	t.Helper()
	l, err := b.Listen("10.0.0.1:0")
	must(t, err)
	dialed, err = a.Dial(t.Context(), l.Addr().String())
	must(t, err)
	accepted, err = l.Accept()
	must(t, err)
	must(t, l.Close())
	return dialed, accepted
}

// Bytes of any number go both ways at once and come whole and in order.
func TestBytesArrive(t *testing.T) {
	maps := mmio.Live()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	_, a, b := newPair(t)
	x, y := join(t, a, b)
	if x.RemoteAddr().String() != y.LocalAddr().String() || x.RemoteAddr().Network() != "rdma_cm" {
		t.Errorf("addresses %v and %v", x.RemoteAddr(), y.LocalAddr())
	}
	if gid := x.(*stream.Conn).SGID(); gid != a.gid.GID {
		t.Errorf("GID %v, want %v", gid, a.gid.GID)
	}
	const total = 3 << 20 // beyond what a side holds
	var wg sync.WaitGroup
	for i, c := range []net.Conn{x, y} {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			data := make([]byte, total)
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			for len(data) > 0 {
				n := min(len(data), int(r.Int32N(20000)))
				if m, err := c.Write(data[:n]); err != nil || m != n {
					t.Errorf("write %d bytes: %d, %v", n, m, err)
					return
				}
				data = data[n:]
			}
		})
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(1-i)))
			want := make([]byte, total)
			for i := range want {
				want[i] = byte(r.Uint32())
			}
			got := make([]byte, total)
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("end %d: read: %v, equal %v", i, err, bytes.Equal(got, want))
			}
		})
	}
	wg.Wait()
	must(t, x.Close())
	must(t, y.Close())
	if n := mmio.Live(); n != maps {
		t.Errorf("%d mappings at the end, %d at the start", n, maps)
	}
}

// What was written before Close is read, then comes the end; the end shows in writes
// too.
func TestEnd(t *testing.T) {
	_, a, b := newPair(t)
	x, y := join(t, a, b)
	said := bytes.Repeat([]byte("last words "), 2000)
	_, err := x.Write(said)
	must(t, err)
	must(t, x.Close())
	if got, err := io.ReadAll(y); err != nil || !bytes.Equal(got, said) {
		t.Errorf("read %d bytes, %v; want %d", len(got), err, len(said))
	}
	if _, err := y.Write([]byte("hello?")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write after the peer's end: %v", err)
	}
	must(t, y.Close())
	for _, err := range []error{
		x.Close(), y.Close(), func() error { _, err := y.Write([]byte{1}); return err }(), func() error { _, err := y.Read(make([]byte, 1)); return err }(),
	} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	}
	must(t, y.SetDeadline(time.Now())) // harmless
}

// A peer that does not read holds the writer back, with a bound on what is held, until
// its deadline or until somebody closes.
func TestSlowReader(t *testing.T) {
	_, a, b := newPair(t)
	for wait := 200 * time.Millisecond; ; wait *= 2 {
		x, y := join(t, a, b)
		must(t, x.SetWriteDeadline(time.Now().Add(wait)))
		n, err := x.Write(make([]byte, 4*stream.MaxHeld))
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("not a timeout: %v", err)
		}
		must(t, x.SetWriteDeadline(time.Time{}))
		_, after := x.Write([]byte{1})
		slow := (n < stream.MaxHeld || after == nil) && wait < time.Minute // the machine is: it was not held back yet
		if !slow && (!errors.Is(err, os.ErrDeadlineExceeded) || n < stream.MaxHeld || n > stream.MaxHeld+stream.MostBeyond) {
			t.Errorf("wrote %d bytes: %v", n, err)
		}
		if !slow && after == nil {
			t.Error("a write after one that was cut off")
		}
		must(t, x.Close())
		if got, err := io.ReadAll(y); err != nil || len(got) < n {
			t.Errorf("read %d of %d bytes: %v", len(got), n, err)
		}
		must(t, y.Close())
		if !slow {
			break
		}
	}

	x, y := join(t, a, b)
	errs := make(chan error)
	go func() { _, err := x.Write(make([]byte, 4*stream.MaxHeld)); errs <- err }()
	go func() { _, err := x.Read(make([]byte, 1)); errs <- err }()
	time.Sleep(10 * time.Millisecond)
	must(t, x.Close())
	for range 2 {
		if err := <-errs; !errors.Is(err, net.ErrClosed) {
			t.Errorf("under a close: %v", err)
		}
	}
	must(t, y.Close())
}

func TestReadDeadline(t *testing.T) {
	_, a, b := newPair(t)
	x, y := join(t, a, b)
	must(t, x.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	if _, err := x.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	// A read that goes on gets a deadline, and none is left.
	must(t, x.SetReadDeadline(time.Time{}))
	errs := make(chan error)
	go func() { _, err := x.Read(make([]byte, 1)); errs <- err }()
	must(t, x.SetReadDeadline(time.Unix(1, 0)))
	if err := <-errs; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	must(t, x.SetDeadline(time.Time{}))
	_, err := y.Write([]byte{7})
	must(t, err)
	if n, err := x.Read(make([]byte, 8)); n != 1 || err != nil {
		t.Errorf("read: %d, %v", n, err)
	}
	must(t, x.Close())
	must(t, y.Close())
}

func TestResolve(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1:80": "10.0.0.1:80", "[fd09::1]:1": "[fd09::1]:1", "[fe80::1%eth7]:9": "[fe80::1%eth7]:9", ":0": "0.0.0.0:0", "[::]:5": "[::]:5",
		"[::ffff:10.0.0.1]:80": "10.0.0.1:80",
	} {
		got, err := stream.Resolve(t.Context(), addr)
		if err != nil || len(got) != 1 || got[0].String() != want {
			t.Errorf("%s: %v, %v", addr, got, err)
		}
	}
}

// Dials that must fail say why, and leave nothing behind.
func TestDialRefused(t *testing.T) {
	m, a, b := newPair(t)
	for addr, text := range map[string]string{
		"10.0.0.1": "missing port", "10.0.0.1:x": "must be a number", "nosuchhost.invalid:1": "nosuchhost.invalid", "10.0.0.1:9": "nobody listens",
	} {
		if _, err := a.Dial(t.Context(), addr); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	l, err := b.Listen("10.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Dial(ctx, l.Addr().String()); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	must(t, l.Close())
	l, err = b.Listen("10.0.0.1:0")
	must(t, err)

	m.pretend("mlx5_9", nil)
	if _, err := a.Dial(t.Context(), l.Addr().String()); err == nil || !strings.Contains(err.Error(), "goes by mlx5_9 port 1, and a is in use") {
		t.Errorf("another device: %v", err)
	}
	m.pretend("", []byte("GET / HTTP/1.1"))
	c, err := a.Dial(t.Context(), l.Addr().String())
	must(t, err) // the listener finds out, and closes
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a stranger's read: %v", err)
	}
	must(t, c.Close())
	m.pretend("", nil)
	c, err = a.Dial(t.Context(), l.Addr().String()) // the listener goes on
	must(t, err)
	must(t, l.Close())
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	if _, err := io.ReadAll(c); err != nil { // closed with its listener
		t.Errorf("read: %v", err)
	}
	must(t, c.Close())
}

// The device is lost: who reads and writes hears it.
func TestDeviceLost(t *testing.T) {
	m, a, b := newPair(t)
	x, y := join(t, a, b)
	for _, l := range m.links {
		l.lost <- fmt.Errorf("wait: %w", verbs.ErrDeviceLost)
	}
	for _, c := range []net.Conn{x, y} {
		if _, err := io.ReadAll(c); !errors.Is(err, verbs.ErrDeviceLost) {
			t.Errorf("read: %v", err)
		}
		if _, err := c.Write([]byte{1}); !errors.Is(err, verbs.ErrDeviceLost) {
			t.Errorf("write: %v", err)
		}
		must(t, c.Close())
	}
}

// A simulated device has no connection manager.
func TestNoConnectionManager(t *testing.T) {
	fabric := sim.NewFabric(sim.Config{})
	dev, err := fabric.NewDevice("sim:", sim.DeviceConfig{})
	must(t, err)
	ctx, err := dev.Open()
	must(t, err)
	_, err = stream.New(ctx, stream.Config{})
	var unsupported *verbs.UnsupportedError
	if !errors.As(err, &unsupported) || unsupported.Feature != "RDMA CM" || !strings.Contains(err.Error(), "sim:") {
		t.Errorf("error %v", err)
	}
	must(t, ctx.Close())
	must(t, fabric.Close())
}
