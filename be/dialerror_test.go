package be_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// TestDialErrorsSayItOnce: the error of a dial names the address once, and no word that the
// step says already; its causes are still found.
func TestDialErrorsSayItOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	mute := serve(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	full := newPairOn(t, simDefaults, be.Config{PoolBytes: 4 << 20}, be.Config{})
	var all [][]byte
	for b, err := full.nodes[0].Alloc(8192); err == nil; b, err = full.nodes[0].Alloc(8192) {
		all = append(all, b)
	}
	defer func() {
		for _, b := range all {
			full.nodes[0].Free(b)
		}
	}()
	_, n := newNode(t, sim.NewFabric(sim.Config{}), "sim0", be.Config{StepTimeout: 100 * time.Millisecond})
	for _, tt := range []struct {
		from *be.Node
		addr string
		is   error
	}{
		{n, closed, syscall.ECONNREFUSED}, {n, mute, os.ErrDeadlineExceeded}, {full.nodes[1], full.listener.Addr().String(), be.ErrRefused},
	} {
		_, err := tt.from.Dial(limit(t), tt.addr, "x")
		var step *be.StepError
		if err == nil || !errors.Is(err, tt.is) || !errors.As(err, &step) || step.Peer != tt.addr {
			t.Errorf("error %v, want %v", err, tt.is)
			continue
		}
		for _, once := range []string{"127.0.0.1", "connect to ", "connect:", "dial"} {
			most := 1
			if strings.HasSuffix(once, ":") || once == "dial" {
				most = 0
			}
			if k := strings.Count(err.Error(), once); k > most {
				t.Errorf("%q is %d times in %q", once, k, err)
			}
		}
	}
}
