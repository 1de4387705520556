package control

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/errors"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const long = 10 * time.Second

// serve runs a server and gives its address. The test ends it.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx, ctx, ln)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return ln.Addr().String()
}

func echo(_ context.Context, c *Conn) error {
	var n int
	if err := c.Recv("ask", &n); err != nil {
		return err
	}
	return c.Send("answer", n+1)
}

func ask(addr string, h Hello) (int, error) {
	c, err := Dial(context.Background(), addr, long)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.Greet(h); err != nil {
		return 0, err
	}
	if err := c.Send("ask", 41); err != nil {
		return 0, err
	}
	var n int
	return n, c.Recv("answer", &n)
}

func TestHello(t *testing.T) {
	opts := map[string]string{"size": "4096", "iters": "1000"}
	addr := serve(t, &Server{Hello: NewHello("write bw", opts), Limit: long, Test: echo})
	other := NewHello("write bw", opts)
	other.Version = 99
	for _, tt := range []struct {
		desc  string
		hello Hello
		want  []string // in the error; none: no error
	}{
		{"same", NewHello("write bw", opts), nil},
		{"other command", NewHello("send lat", opts), []string{"hello", `"write bw"`, `"send lat"`}},
		{"other options", NewHello("write bw", map[string]string{"size": "8192", "qp": "2"}), []string{`--size: server has "4096", client has "8192"`, `--iters: server has "1000", client has ""`, `--qp: server has "", client has "2"`}},
		{"other version", other, []string{"server has 1, client has 99"}},
		{"other program", Hello{Protocol: "iperf3"}, []string{ErrNotBebench.Error()}},
		{"same again", NewHello("write bw", opts), nil},
	} {
		n, err := ask(addr, tt.hello)
		if tt.want == nil {
			if err != nil || n != 42 {
				t.Errorf("%s: %d, %v", tt.desc, n, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: no error", tt.desc)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q in it", tt.desc, err, want)
			}
		}
	}
}

func TestServerSurvivesBadClients(t *testing.T) {
	var bad atomic.Int32
	addr := serve(t, &Server{Hello: NewHello("x", nil), Limit: time.Second, Test: echo, Ended: func(_ string, err error) {
		if err != nil {
			bad.Add(1)
		}
	}})
	hanging := map[string][]byte{
		"silent":         nil,
		"half a frame":   append(binary.BigEndian.AppendUint32(nil, 100), "{"...),
		"HTTP":           []byte("GET / HTTP/1.1\r\n\r\n"),
		"perftest":       []byte("0000:0011:000092:9d3fe4:00000000:fe80"),
		"no JSON":        append(binary.BigEndian.AppendUint32(nil, 4), "abcd"...),
		"another step":   append(binary.BigEndian.AppendUint32(nil, 14), `{"step":"bye"}`...),
		"absurd length":  {0xff, 0xff, 0xff, 0xff},
		"hangs up early": {0},
	}
	for desc, b := range hanging {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(b); err != nil {
			t.Errorf("%s: %v", desc, err)
		}
		if len(b) == 1 {
			c.Close()
		}
	}
	// All of them are still connected while a good client is served.
	if n, err := ask(addr, NewHello("x", nil)); err != nil || n != 42 {
		t.Errorf("good client: %d, %v", n, err)
	}
	for deadline := time.Now().Add(long); int(bad.Load()) < len(hanging) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if int(bad.Load()) != len(hanging) {
		t.Errorf("%d clients ended with an error, want %d", bad.Load(), len(hanging))
	}
}

func TestHangingServerIsNamedByStep(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err == nil {
			defer c.Close()
			_, _ = io.Copy(io.Discard, c)
		}
	}()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := New(context.Background(), nc, 50*time.Millisecond)
	defer c.Close()
	err = c.Greet(NewHello("x", nil))
	var step *StepError
	if !errors.Is(err, ErrTimeout) || !errors.As(err, &step) || step.Step != "hello" || !strings.Contains(err.Error(), "50ms") {
		t.Errorf("err = %v; want ErrTimeout at step hello, naming the limit", err)
	}
}

func TestContextEndsAStep(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	a, b := net.Pipe()
	defer b.Close()
	c := New(ctx, a, long)
	defer c.Close()
	cause := errors.New("interrupted")
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	if err := c.Recv("ready", nil); !errors.Is(err, cause) {
		t.Errorf("err = %v, want %v", err, cause)
	}
}

func TestOnceServesOneTestAndIgnoresBadClients(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Hello: NewHello("x", nil), Limit: long, Once: true, Test: echo}
	done := make(chan error)
	go func() { done <- s.Run(context.Background(), context.Background(), ln) }()
	if _, err := ask(ln.Addr().String(), NewHello("y", nil)); !errors.Is(err, ErrRefused) {
		t.Errorf("bad client: %v", err)
	}
	if n, err := ask(ln.Addr().String(), NewHello("x", nil)); err != nil || n != 42 {
		t.Errorf("good client: %d, %v", n, err)
	}
	if err := <-done; err != nil {
		t.Errorf("Run = %v", err)
	}
}

func TestListenOnTakenPort(t *testing.T) {
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if _, err := Listen(ln.Addr().String()); err == nil || !strings.Contains(err.Error(), "-p") {
		t.Errorf("err = %v, want the remedy -p", err)
	}
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x0e{\"step\":\"bye\"}"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("\x00\x00\x00\x02{}\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, z := net.Pipe()
		go func() {
			_, _ = z.Write(b)
			z.Close()
		}()
		c := New(context.Background(), a, time.Second)
		defer c.Close()
		for {
			var h Hello
			if err := c.Recv("hello", &h); err != nil {
				return
			}
		}
	})
}

// TestStrangersAreBounded: a stranger's words cannot play with the terminal, and its
// first message cannot be long.
func TestStrangersAreBounded(t *testing.T) {
	for _, tt := range []struct{ send, want string }{
		{"\x00\x00\x00\x25" + `{"step":"failed","body":"\u001b[2Jx"}`, "gave up: \ufffd[2Jx"},
		{"\x00\x02\x00\x00", ErrNotBebench.Error()},
	} {
		ended := make(chan error, 1)
		addr := serve(t, &Server{Hello: NewHello("write bw", nil), Limit: long, Test: echo, Ended: func(_ string, err error) { ended <- err }})
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, tt.send); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %q, want %q in it", tt.send, err, tt.want)
		}
		c.Close()
	}
}
