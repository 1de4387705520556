package archon

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestHelloGolden(t *testing.T) {
	want := append([]byte{'B', 'X', 'T', 'P', 1, 2, 0, 0, 0, 0, 1, 0}, "ps"...)
	if got := appendHello(nil, hello{max: 1 << 16, service: "ps"}); !bytes.Equal(got, want) {
		t.Errorf("hello % x, want % x", got, want)
	}
	for n := range want {
		if _, err := readHello(bytes.NewReader(want[:n])); err == nil {
			t.Errorf("a hello of %d bytes was taken", n)
		}
	}
	for desc, c := range map[string]struct {
		at int
		to byte
	}{"magic": {0, 'G'}, "version": {4, 2}, "no service": {5, 0}, "reserved": {7, 1}, "longest message 0": {10, 0}, "longest message 3 GiB": {11, 0xc0}} {
		b := bytes.Clone(want)
		b[c.at] = c.to
		if _, err := readHello(bytes.NewReader(b)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", desc, err)
		}
	}
}

func FuzzHello(f *testing.F) {
	f.Add(appendHello(nil, hello{max: 1 << 20, service: "ps"}))
	f.Add(appendPrelude(nil, welcomeOK, 1<<20))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := readHello(bytes.NewReader(b)); err == nil {
			if again := appendHello(nil, h); !bytes.HasPrefix(b, again) {
				t.Errorf("read and written:\n% x, was\n% x", again, b)
			}
		}
		if max, err := readWelcome(bytes.NewReader(b)); err == nil {
			if again := appendPrelude(nil, welcomeOK, max); !bytes.HasPrefix(b, again) {
				t.Errorf("read and written:\n% x, was\n% x", again, b)
			}
		}
	})
}

// FuzzFrames cuts bytes into messages that arrive in pieces of any length.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0}, uint16(1))
	f.Add(append([]byte{0, 32, 0, 0}, make([]byte, 8192)...), uint16(100))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, uint16(4))
	f.Fuzz(func(t *testing.T, b []byte, piece uint16) {
		const max = 1 << 16
		r := frameReader{conn: &pieces{b, int(piece)%2000 + 1}, max: max, buf: make([]byte, readBuffer), ask: readBuffer}
		rest := b
		for {
			m, err := r.next()
			if err != nil {
				break
			}
			n := int(binary.LittleEndian.Uint32(rest))
			if !bytes.Equal(m, rest[4:4+n]) {
				t.Fatalf("message of %d bytes differs from the %d sent", len(m), n)
			}
			rest = rest[4+n:]
			buffers.put(m)
		}
		if len(rest) >= 4 {
			if n := uint64(binary.LittleEndian.Uint32(rest)); n <= max && uint64(len(rest)) >= 4+n {
				t.Fatalf("%d bytes left with a whole message among them", len(rest))
			}
		}
	})
}

func (p *pieces) begun() {}
func (p *pieces) whole() {}

// pieces reads at most n bytes at once.
type pieces struct {
	b []byte
	n int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.n)], p.b)
	p.b = p.b[n:]
	return n, nil
}

func frame(h header, body int) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(HeaderSize+body))
	b = append(b, make([]byte, HeaderSize+body)...)
	h.put(b[4:])
	return b
}

// TestHostileClients sends what no client of ours does; the server hangs up on each
// and goes on with the others.
func TestHostileClients(t *testing.T) {
	addr := Serve(t, EchoServer(t, ServerConfig{}), TCP{MaxMessage: 1 << 16, HelloTimeout: 200 * time.Millisecond, MessageTimeout: 200 * time.Millisecond})
	good := DialTo(t, TCP{}, addr, ClientConfig{})
	greeting := appendHello(nil, hello{max: 1 << 20, service: "x"})
	for _, c := range []struct {
		desc string
		b    []byte
	}{
		{"nothing", nil},
		{"half a hello", greeting[:7]},
		{"another protocol", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")},
		{"a message of 4 GiB", append(bytes.Clone(greeting), 0xff, 0xff, 0xff, 0xff)},
		{"a message of a byte too many", append(bytes.Clone(greeting), 1, 0, 1, 0)},
		{"a message without a header", append(bytes.Clone(greeting), 3, 0, 0, 0, 1, 2, 3)},
		{"garbage", append(bytes.Clone(greeting), bytes.Repeat([]byte{0x33, 1, 0, 0}, 200)...)},
		{"a response", append(bytes.Clone(greeting), frame(header{kind: kindResponse, id: 1}, 0)...)},
		{"an item", append(bytes.Clone(greeting), frame(header{kind: kindItem}, 0)...)},
		{"a pong", append(bytes.Clone(greeting), frame(header{kind: kindPong}, 0)...)},
		{"a window for a call beyond all", append(bytes.Clone(greeting), frame(header{kind: kindWindow, id: 1 << 31, window: 1}, 0)...)},
		{"metadata of 64 KiB", append(bytes.Clone(greeting), frame(header{kind: kindRequest, meta: 0xfff8}, 0xfff8)...)},
		{"metadata of zeros", append(bytes.Clone(greeting), frame(header{kind: kindRequest, meta: 8}, 8)...)},
		{"half a length", append(bytes.Clone(greeting), 1, 0)},
		{"half a short message", append(bytes.Clone(greeting), frame(header{kind: kindPing}, 0)[:30]...)},
		{"half a long message", append(bytes.Clone(greeting), frame(header{kind: kindRequest, payload: 9000}, 9000)[:8000]...)},
		{"lengths that do not add up", append(bytes.Clone(greeting), frame(header{kind: kindRequest, payload: 5}, 4)...)},
	} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conn.Write(c.b)
		conn.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, context.DeadlineExceeded) || strings.Contains(errorString(err), "timeout") {
			t.Errorf("%s: the server did not hang up", c.desc)
		}
		conn.Close()
		if _, err := CallOn(t, context.Background(), good, EchoMethod, []byte("still there?")); err != nil {
			t.Fatalf("%s: another client's call: %v", c.desc, err)
		}
	}
}

func errorString(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestHostileServers answers what no server of ours does.
func TestHostileServers(t *testing.T) {
	welcome := appendPrelude(nil, welcomeOK, 1<<20)
	for _, c := range []struct {
		desc string
		b    []byte
		want error
	}{
		{"hangs up", nil, io.EOF},
		{"half a welcome", welcome[:5], io.ErrUnexpectedEOF},
		{"another protocol", []byte("SSH-2.0-OpenSSH_9.2\r\n"), ErrProtocol},
		{"another version", append([]byte("BXTP\x02"), welcome[5:]...), ErrProtocol},
		{"a refusal", appendPrelude(nil, welcomeBadVersion, 1<<20), ErrProtocol},
		{"a request", append(bytes.Clone(welcome), frame(header{kind: kindRequest}, 0)...), ErrProtocol},
		{"a message of 4 GiB", append(bytes.Clone(welcome), 0xff, 0xff, 0xff, 0xff), ErrProtocol},
		{"a response to no call", append(bytes.Clone(welcome), frame(header{kind: kindResponse, id: 1 << 40}, 0)...), ErrProtocol},
		{"an item of no stream", append(bytes.Clone(welcome), frame(header{kind: kindItem, id: 3, payload: 1}, 1)...), ErrProtocol},
		{"a pong to no ping", append(bytes.Clone(welcome), frame(header{kind: kindPong, id: 3}, 0)...), ErrProtocol},
		{"a window", append(bytes.Clone(welcome), frame(header{kind: kindWindow, window: 1}, 0)...), ErrProtocol},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := l.Accept(); err == nil {
				readHello(conn)
				conn.Write(c.b)
				conn.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, conn)
				conn.Close()
			}
		}()
		client, err := Dial(context.Background(), TCP{}, l.Addr().String(), "x", ClientConfig{})
		if err == nil {
			<-client.Done()
			err = client.Err()
			client.Close()
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.desc, err)
		}
		l.Close()
	}
}

// TestConnectionsAreBounded: who is too many hears so, and may come when others left.
func TestConnectionsAreBounded(t *testing.T) {
	addr := Serve(t, EchoServer(t, ServerConfig{}), TCP{MaxConns: 2})
	first := DialTo(t, TCP{}, addr, ClientConfig{})
	DialTo(t, TCP{}, addr, ClientConfig{})
	for range 10 {
		_, err := Dial(context.Background(), TCP{}, addr, "x", ClientConfig{})
		if !errors.Is(err, Unavailable) || !IsRetryable(err) || !strings.Contains(err.Error(), "as many connections as it may") {
			t.Fatalf("a third connection: %v", err)
		}
	}
	first.Close()
	for {
		c, err := Dial(context.Background(), TCP{}, addr, "x", ClientConfig{})
		if err == nil {
			c.Close()
			<-c.Done()
			return
		}
		if !IsRetryable(err) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // until the server has seen the first go
	}
}

func TestDialGivesUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // never welcomes
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := (TCP{}).Dial(ctx, l.Addr().String(), "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	var timeout net.Error
	if _, err := (TCP{HelloTimeout: 10 * time.Millisecond}).Dial(context.Background(), l.Addr().String(), "x"); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("hello timeout: %v", err)
	}
	for _, service := range []string{"", strings.Repeat("x", 256)} {
		if _, err := (TCP{}).Dial(context.Background(), l.Addr().String(), service); err == nil {
			t.Errorf("dialed for a service name of %d bytes", len(service))
		}
	}
	if _, err := (TCP{MaxMessage: 100}).Listen("127.0.0.1:0"); err == nil {
		t.Error("listened with messages too short for a header")
	}
	if _, err := (TCP{}).Listen(l.Addr().String()); err == nil {
		t.Error("listened on a port in use")
	}
}
