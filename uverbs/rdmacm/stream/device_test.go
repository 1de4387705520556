package stream_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm/stream"
	"github.com/byteexpress/byteexpress/verbs"
)

// newDeviceNet is a network on the device that the tests may use, and an address to
// listen on. Closing the context at the end fails if anything is left.
func newDeviceNet(t *testing.T) (n *stream.Net, addr string) {
	t.Helper()
	dev, err := provider.Open(testdev.Name(t))
	must(t, err)
	ctx, err := dev.Open()
	must(t, err)
	t.Cleanup(func() { must(t, ctx.Close()) })
	gids, err := ctx.GIDs(1)
	must(t, err)
	n, err = stream.New(ctx, stream.Config{Port: 1, Timeout: patience})
	must(t, err)
	return n, netip.AddrPortFrom(verbs.RankGIDs(gids)[0].GID.Addr(), 0).String()
}

// Over the kernel's connection manager: many bytes both ways, with readers that are slow
// at first, and the end.
func TestDeviceStream(t *testing.T) {
	a, addr := newDeviceNet(t)
	b, _ := newDeviceNet(t)
	l, err := b.Listen(addr)
	must(t, err)
	x, err := a.Dial(t.Context(), l.Addr().String())
	must(t, err)
	y, err := l.Accept()
	must(t, err)
	must(t, l.Close())
	if x.RemoteAddr().String() != y.LocalAddr().String() || x.LocalAddr().String() != y.RemoteAddr().String() {
		t.Errorf("addresses %v to %v and %v to %v", x.LocalAddr(), x.RemoteAddr(), y.LocalAddr(), y.RemoteAddr())
	}
	if gid := x.(*stream.Conn).SGID(); gid.Addr() != netip.MustParseAddrPort(l.Addr().String()).Addr() {
		t.Errorf("GID %v", gid)
	}
	said := bytes.Repeat([]byte("there and back again. "), 50000) // beyond what a side holds
	if testdev.RNRLoop.Here(testdev.Name(t)) {
		said = said[:stream.MostBeyond/4] // there are receives for all of it
	}
	var wg sync.WaitGroup
	for _, c := range []net.Conn{x, y} {
		wg.Go(func() {
			if n, err := c.Write(said); n != len(said) || err != nil {
				t.Errorf("wrote %d bytes: %v", n, err)
			}
		})
		wg.Go(func() {
			time.Sleep(100 * time.Millisecond) // the writer has to wait for receives
			got := make([]byte, len(said))
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, said) {
				t.Errorf("read: %v", err)
			}
		})
	}
	wg.Wait()
	must(t, x.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	if _, err := x.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	_, err = y.Write([]byte("good bye"))
	must(t, err)
	must(t, y.Close())
	must(t, x.SetReadDeadline(time.Time{}))
	if got, err := io.ReadAll(x); err != nil || string(got) != "good bye" {
		t.Errorf("read %q, %v", got, err)
	}
	must(t, x.Close())
}
