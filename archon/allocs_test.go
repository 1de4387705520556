package archon_test

import (
	"context"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// TestCallsDoNotAllocate runs calls in this process, so both sides count.
func TestCallsDoNotAllocate(t *testing.T) { eachTransport(t, testCallsDoNotAllocate) }

func testCallsDoNotAllocate(t *testing.T, tr transport) {
	if raceEnabled {
		t.Skip("sync.Pool drops things at random under the race detector")
	}
	c := tr.connect(t, archon.EchoServer(t, archon.ServerConfig{}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for _, m := range []archon.Method{archon.EchoMethod, archon.WorkerMethod} {
		for _, size := range []int{64, 64 << 10} {
			once := func() {
				req, err := c.Alloc(size)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := c.Call(ctx, m, req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Release()
			}
			for range 100 {
				once()
			}
			if n := testing.AllocsPerRun(1000, once); n != 0 {
				t.Errorf("%v of %d bytes: %v allocations a call", m, size, n)
			}
		}
	}
}

// TestTypedCallsDoNotAllocate: nor do codecs, metadata and interceptors.
func TestTypedCallsDoNotAllocate(t *testing.T) { eachTransport(t, testTypedCallsDoNotAllocate) }

func testTypedCallsDoNotAllocate(t *testing.T, tr transport) {
	if raceEnabled {
		t.Skip("sync.Pool drops things at random under the race detector")
	}
	around := func(call *archon.ServerCall, next archon.Handler) error {
		if _, ok := call.Metadata().Get("who"); !ok {
			return archon.PermissionDenied
		}
		return next(call)
	}
	addr := archon.Serve(t, typedServer(t, archon.ServerConfig{Interceptors: []archon.Interceptor{around}}), tr.server)
	c := archon.DialTo(t, tr.client, addr, archon.ClientConfig{Interceptors: []archon.ClientInterceptor{
		func(ctx context.Context, inv *archon.Invocation, next archon.Invoker) (archon.Response, error) {
			if err := inv.Metadata.Add("who", "me"); err != nil {
				return archon.Response{}, err
			}
			return next.Do(ctx, inv)
		},
	}})
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var in, out pair
	var rawIn, rawOut archon.Raw
	some := make([]byte, 1000)
	for desc, once := range map[string]func() error{
		"binary": func() error { return archon.Invoke(ctx, c, swap, &in, &out) },
		"raw": func() (err error) {
			if rawIn, err = c.AllocRaw(100); err == nil {
				err = archon.Invoke(ctx, c, rawAll, &rawIn, &rawOut)
			}
			rawOut.Release()
			return err
		},
		"raw bytes": func() error {
			rawIn = archon.RawBytes(some)
			defer rawOut.Release()
			return archon.Invoke(ctx, c, rawAll, &rawIn, &rawOut)
		},
		"one-way": func() error { // and a call, so that they do not pile up
			if err := archon.Send(ctx, c, swap, &in); err != nil {
				return err
			}
			return archon.Invoke(ctx, c, swap, &in, &out)
		},
	} {
		n := testing.AllocsPerRun(1000, func() {
			if err := once(); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations a call", desc, n)
		}
	}
}

// TestStreamsDoNotAllocate: nor do a stream's messages, at either end.
func TestStreamsDoNotAllocate(t *testing.T) { eachTransport(t, testStreamsDoNotAllocate) }

func testStreamsDoNotAllocate(t *testing.T, tr transport) {
	if raceEnabled {
		t.Skip("sync.Pool drops things at random under the race detector")
	}
	endless := archon.NewServerStream("test.Endless", archon.Empty(), archon.Binary[pair]())
	s := archon.NewServer(archon.ServerConfig{})
	err := archon.HandleStream(s, endless, func(_ *archon.ServerCall, _ *struct{}, out *archon.ItemSender[pair]) error {
		var item pair
		for {
			item.A++
			if err := out.Send(&item); err != nil {
				return err
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := archon.OpenStream(context.Background(), tr.connect(t, s), endless, &struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var item pair
	next := func() {
		last := item.A
		if err := r.Recv(&item); err != nil || item.A != last+1 {
			t.Fatalf("item %d after %d: %v", item.A, last, err)
		}
	}
	for range 100_000 { // the queue has grown to the window
		next()
	}
	if n := testing.AllocsPerRun(100_000, next); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// The control: what the test above counts, it does count.
func TestAllocationsAreCounted(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops things at random under the race detector")
	}
	s, m := archon.NewServer(archon.ServerConfig{}), archon.NewMethod("test.Context")
	s.HandleInline(m, func(call *archon.ServerCall) error { return call.Context().Err() })
	c := transport{"tcp", archon.TCP{}, archon.TCP{}}.connect(t, s)
	n := testing.AllocsPerRun(100, func() {
		req, _ := c.Alloc(1)
		resp, err := c.Call(context.Background(), m, req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Release()
	})
	if n == 0 {
		t.Error("a handler that makes a context counts as no allocation")
	}
}
