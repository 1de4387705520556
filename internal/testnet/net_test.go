package testnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/byteexpress/byteexpress/internal/testnet"
)

// pair connects hosts a and b.
func pair(t *testing.T, n *testnet.Net) (a, b net.Conn) {
	t.Helper()
	l, err := n.Host("b").Listen("b:0")
	if err != nil {
		t.Fatal(err)
	}
	if a, err = n.Host("a").Dial(t.Context(), l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// took gives how long it takes until c has read something, and what it read.
func took(c net.Conn) (time.Duration, string, error) {
	began, b := time.Now(), make([]byte, 100)
	n, err := c.Read(b)
	return time.Since(began), string(b[:n]), err
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		desc          string
		strike, heal  func(n *testnet.Net)
		reads         string
		err           error
		least, atMost time.Duration
	}{
		{"none", func(*testnet.Net) {}, func(*testnet.Net) {}, "x", nil, 40 * time.Microsecond, time.Millisecond},
		{"lost and sent again", func(n *testnet.Net) { n.Lose("a", "b", true) }, func(n *testnet.Net) { n.Lose("a", "b", false) }, "x", nil, time.Second, 2 * time.Second},
		{"frozen", func(n *testnet.Net) { n.Host("b").Freeze(true) }, func(n *testnet.Net) { n.Host("b").Freeze(false) }, "x", nil, time.Second, time.Second},
		{"killed", func(n *testnet.Net) { n.Host("a").Kill() }, func(*testnet.Net) {}, "", syscall.ECONNRESET, 40 * time.Microsecond, time.Millisecond},
		{"killed itself", func(n *testnet.Net) { n.Host("b").Kill() }, func(*testnet.Net) {}, "", net.ErrClosed, 0, 0},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := testnet.New(1)
				a, b := pair(t, n)
				tt.strike(n)
				a.Write([]byte("x"))
				time.AfterFunc(time.Second, func() { tt.heal(n) })
				d, got, err := took(b)
				if got != tt.reads || !errors.Is(err, tt.err) || d < tt.least || d > tt.atMost {
					t.Errorf("%q, %v after %v", got, err, d)
				}
			})
		})
	}
}

// TestOrder: bytes come in the order in which they were sent, then the end.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, testnet.New(2))
		want := ""
		for i := range byte(100) {
			a.Write([]byte{i})
			want += string(rune(i))
			if i%3 == 0 {
				time.Sleep(time.Microsecond)
			}
		}
		a.Close()
		if got, err := io.ReadAll(b); string(got) != want || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New(3)
		if _, err := n.Host("a").Dial(t.Context(), "b:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Error(err)
		}
		n.Lose("a", "b", true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Host("a").Dial(ctx, "b:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		n.Lose("a", "b", false)
		a, _ := pair(t, n)
		a.SetReadDeadline(time.Now().Add(time.Second))
		if d, _, err := took(a); d != time.Second || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v after %v", err, d)
		}
	})
}
