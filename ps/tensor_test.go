package ps_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/ps"
)

// serveTensors serves tensors until the test ends.
func (tr transport) serveTensors(t testing.TB, keep time.Duration) (*ps.Tensors, *be.Node, *archon.Client) {
	t.Helper()
	host := tr.server(t)
	cfg := ps.TensorsConfig{Keep: keep}
	if on, ok := host.(archon.BE); ok {
		cfg.Node = on.Node
	}
	tensors, err := ps.NewTensors(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tensors.Close() })
	return tensors, cfg.Node, tr.connect(t, host, tensors.Register)
}

// connect serves what register registers until the test ends, and gives a connection.
func (tr transport) connect(t testing.TB, host archon.Transport, register func(*archon.Server) error) *archon.Client {
	t.Helper()
	srv := archon.NewServer(archon.ServerConfig{})
	if err := register(srv); err != nil {
		t.Fatal(err)
	}
	l, err := host.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background(), l) }()
	c, err := archon.Dial(t.Context(), tr.client, l.Addr().String(), "ps", archon.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
		srv.Close()
		l.Close()
		<-served
	})
	return c
}

// page is the data of a version of the tests' tensor: no part of it is one of another.
func page(version uint64, size int) []byte {
	return bytes.Repeat([]byte{byte(version), byte(version >> 8), 0x5a}, size/3+1)[:size]
}

func wantPage(t testing.TB, version uint64, size int, v uint64, data []byte, err error) {
	t.Helper()
	if err != nil || v != version || !bytes.Equal(data, page(version, size)) {
		t.Fatalf("read version %d of %d bytes, %v; want version %d of %d", v, len(data), err, version, size)
	}
}

// TestTensor: editions are read as they were published, of any length, with no allocation;
// over ByteExpress with no message to the server.
func TestTensor(t *testing.T) { eachTransport(t, testTensor) }

func testTensor(t *testing.T, tr transport) {
	tensors, node, c := tr.serveTensors(t, 0)
	w := ps.OpenTensor(c, "weights")
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, _, err := w.Read(ctx); !errors.Is(err, archon.NotFound) {
		t.Errorf("before it is there: %v", err)
	}
	version := uint64(0)
	for _, size := range []int{0, 1, 1000, 300_000, 300_000, 5} {
		version += 3
		if err := tensors.Publish("weights", version, page(version, size)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			v, data, err := w.Read(ctx)
			wantPage(t, version, size, v, data, err)
			clear(data) // it is the reader's
		}
	}
	if err := tensors.Publish("weights", version, nil); !errors.Is(err, archon.FailedPrecondition) {
		t.Errorf("the same version again: %v", err)
	}
	for _, name := range []string{"", strings.Repeat("x", 256)} {
		if err := tensors.Publish(name, 1, nil); !errors.Is(err, archon.InvalidArgument) {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
	st := w.Stats()
	if direct := node != nil; direct != (st.Reads == 12) || direct == (st.Calls == 12) || st.Failed+st.Invalid != 0 {
		t.Errorf("%+v", st)
	}
	once := func() {
		if _, _, err := w.Read(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var before be.Stats
	if node != nil {
		before = node.Stats()
	}
	for range 200 {
		once()
	}
	if node != nil {
		after := node.Stats()
		if after.Received != before.Received || after.Sends-after.CreditMessages != before.Sends-before.CreditMessages {
			t.Errorf("200 reads brought the server %d messages", after.Received-before.Received)
		}
	}
	if !raceEnabled {
		if n := testing.AllocsPerRun(200, once); n != 0 {
			t.Errorf("%v allocations a read", n)
		}
	}
	if !tensors.Remove("weights") || tensors.Remove("weights") {
		t.Error("removed not once")
	}
	if _, _, err := w.Read(ctx); !errors.Is(err, archon.NotFound) {
		t.Errorf("after it is removed: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := w.Read(gone); !errors.Is(err, archon.Canceled) && !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that ended: %v", err)
	}
}

// TestTensorIsNeverMixed: while editions follow one another, readers get each whole, and
// none that is older than what was published before they began.
func TestTensorIsNeverMixed(t *testing.T) { eachTransport(t, testTensorIsNeverMixed) }

func testTensorIsNeverMixed(t *testing.T, tr transport) {
	const size = 200_000
	tensors, _, c := tr.serveTensors(t, 200*time.Millisecond)
	if err := tensors.Publish("weights", 1, page(1, size)); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	newest := uint64(1)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for v := uint64(2); ctx.Err() == nil; v++ {
			if err := tensors.Publish("weights", v, page(v, size)); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			newest = v
			mu.Unlock()
			time.Sleep(time.Millisecond) // a reader has its turn
		}
	})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			w := ps.OpenTensor(c, "weights")
			defer w.Close()
			for range 150 {
				mu.Lock()
				least := newest
				mu.Unlock()
				v, data, err := w.Read(t.Context())
				if err != nil || v < least || !bytes.Equal(data, page(v, size)) {
					t.Errorf("version %d of %d bytes, %v; %d was published before", v, len(data), err, least)
					return
				}
			}
			if st := w.Stats(); st.Failed+st.Invalid != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
	readers.Wait()
	stop()
	all.Wait()
}

// TestHostileTensors: a server's made-up places, and what else it may answer, are errors.
func TestHostileTensors(t *testing.T) {
	tr := simTransport(t)
	host := tr.server(t)
	b, err := host.(archon.BE).Node.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	x, err := host.(archon.BE).Node.Expose(b)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		x.Close()
		host.(archon.BE).Node.Free(b)
	}()
	place := func(spoil func(token []byte), bytes, keep uint64) []byte {
		token := x.Token()
		spoil(token[:])
		return appendU64(token[:], 1, bytes, keep)
	}
	none := func([]byte) {}
	for desc, answer := range map[string][]byte{
		"nothing":                     nil,
		"no edition":                  make([]byte, 64),
		"memory that is no tensor":    place(none, 4096, 1e9),
		"a place of a byte":           place(none, 1, 1e9),
		"a place of 2^63 bytes":       place(none, 1<<63, 1e9),
		"a place that is never valid": place(none, 4096, 1<<63),
		"a token of another node":     place(func(k []byte) { k[0]++ }, 4096, 1e9),
		"a token that is none":        place(func(k []byte) { k[36]++ }, 4096, 1e9),
		"a place beyond the memory":   place(none, 5000, 1e9),
		"a key that was made up":      place(func(k []byte) { k[33] ^= 0x55 }, 4096, 1e9),
		"an address that was made up": place(func(k []byte) { k[20]++ }, 4096, 1e9),
	} {
		c := tr.connect(t, host, func(s *archon.Server) error {
			h := func(call *archon.ServerCall) error {
				out, err := call.Alloc(len(answer))
				copy(out, answer)
				return err
			}
			return errors.Join(s.HandleInline(ps.MethodTensorPlace, h), s.HandleInline(ps.MethodTensor, h))
		})
		w := ps.OpenTensor(c, "weights")
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if v, _, err := w.Read(ctx); err == nil || ctx.Err() != nil {
				t.Errorf("%s: version %d, %v", desc, v, err)
			}
			cancel()
		}
		w.Close()
	}
}

func appendU64(b []byte, all ...uint64) []byte {
	for _, v := range all {
		for i := range 8 {
			b = append(b, byte(v>>(8*i)))
		}
	}
	return b
}

// A tensor that many read and nobody asks for.
func ExampleTensor() {
	ctx := context.Background()
	serverNode, clientNode := newNode(), newNode()
	defer serverNode.Close()
	defer clientNode.Close()

	tensors, err := ps.NewTensors(ps.TensorsConfig{Node: serverNode})
	if err != nil {
		log.Fatal(err)
	}
	defer tensors.Close()
	server := archon.NewServer(archon.ServerConfig{})
	defer server.Close()
	if err := tensors.Register(server); err != nil {
		log.Fatal(err)
	}
	l := listen(archon.BE{Node: serverNode})
	go server.Serve(ctx, l)
	if err := tensors.Publish("bias", 1, []byte{1, 2, 3}); err != nil {
		log.Fatal(err)
	}

	c, err := archon.Dial(ctx, archon.BE{Node: clientNode}, l.Addr().String(), "ps", archon.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	bias := ps.OpenTensor(c, "bias")
	defer bias.Close()
	for range 2 {
		version, data, err := bias.Read(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(version, data)
		if err := tensors.Publish("bias", version+1, []byte{4, 5}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 1 [1 2 3]
	// 2 [4 5]
}
