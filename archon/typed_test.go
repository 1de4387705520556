package archon_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// pair is a message with AppendBinary.
type pair struct{ A, B uint64 }

func (p *pair) AppendBinary(b []byte) ([]byte, error) {
	b = binary.LittleEndian.AppendUint64(b, p.A)
	return binary.LittleEndian.AppendUint64(b, p.B), nil
}

func (p *pair) MarshalBinary() ([]byte, error) { return p.AppendBinary(nil) }

func (p *pair) UnmarshalBinary(b []byte) error {
	if len(b) != 16 {
		return errors.New("a pair has 16 bytes")
	}
	p.A, p.B = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	return nil
}

// text is a message with MarshalBinary alone.
type text struct{ s string }

func (m *text) MarshalBinary() ([]byte, error) {
	if m.s == "cannot be encoded" {
		return nil, errors.New("as it says")
	}
	return []byte(m.s), nil
}

func (m *text) UnmarshalBinary(b []byte) error {
	m.s = string(b)
	return nil
}

var (
	swap   = archon.NewUnary("test.Swap", archon.Binary[pair](), archon.Binary[pair]())
	upper  = archon.NewUnary("test.Upper", archon.Binary[text](), archon.Binary[text]())
	rawAll = archon.NewUnary("test.Raw", archon.RawCodec(), archon.RawCodec())
	none   = archon.NewUnary("test.None", archon.Empty(), archon.Empty())
	count  = archon.NewServerStream("test.Count", archon.Binary[pair](), archon.Binary[text]())
)

func typedServer(t testing.TB, cfg archon.ServerConfig) *archon.Server {
	s := archon.NewServer(cfg)
	err := errors.Join(
		archon.HandleInline(s, swap, func(_ *archon.ServerCall, req, resp *pair) error {
			*resp = pair{req.B, req.A}
			return nil
		}),
		archon.Handle(s, upper, func(call *archon.ServerCall, req, resp *text) error {
			if v, ok := call.Metadata().Get("who"); ok {
				if err := call.AddReplyMetadata("hello", string(v)); err != nil {
					return err
				}
			}
			if req.s == "fail" {
				return archon.Errorf(archon.NotFound, "failed as asked")
			}
			resp.s = strings.ToUpper(req.s)
			return nil
		}),
		archon.Handle(s, rawAll, func(call *archon.ServerCall, req, _ *archon.Raw) error {
			out, err := call.Alloc(len(req.Payload()))
			copy(out, req.Payload())
			return err
		}),
		archon.HandleInline(s, none, func(*archon.ServerCall, *struct{}, *struct{}) error { return nil }),
		archon.HandleStream(s, count, func(_ *archon.ServerCall, req *pair, out *archon.ItemSender[text]) error {
			for i := req.A; i < req.B; i++ {
				if err := out.Send(&text{strings.Repeat("x", int(i))}); err != nil {
					return err
				}
			}
			return nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTypedCalls(t *testing.T) { eachTransport(t, testTypedCalls) }

func testTypedCalls(t *testing.T, tr transport) {
	c := tr.connect(t, typedServer(t, archon.ServerConfig{}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := range uint64(100) {
		in, out := pair{i, 7}, pair{}
		if err := archon.Invoke(ctx, c, swap, &in, &out); err != nil || out != (pair{7, i}) {
			t.Fatalf("swap: %v, %v", out, err)
		}
	}
	for _, n := range []int{0, 1, 511, 513, 70000, 1 << 20} { // over every guess
		in, out := text{strings.Repeat("a", n)}, text{}
		if err := archon.Invoke(ctx, c, upper, &in, &out); err != nil || out.s != strings.Repeat("A", n) {
			t.Errorf("upper of %d bytes: %d, %v", n, len(out.s), err)
		}
	}
	if err := archon.Invoke(ctx, c, none, &struct{}{}, &struct{}{}); err != nil {
		t.Errorf("none: %v", err)
	}
	for _, zeroCopy := range []bool{true, false} {
		want := []byte("raw bytes")
		req, resp := archon.RawBytes(want), archon.Raw{}
		if zeroCopy {
			var err error
			if req, err = c.AllocRaw(len(want)); err != nil {
				t.Fatal(err)
			}
			copy(req.Payload(), want)
		}
		if err := archon.Invoke(ctx, c, rawAll, &req, &resp); err != nil || !bytes.Equal(resp.Payload(), want) {
			t.Errorf("raw: %q, %v", resp.Payload(), err)
		}
		resp.Release()
		resp.Release()
		if zeroCopy && req.Payload() != nil {
			t.Error("the call did not take the buffer")
		}
	}
}

func TestTypedFailures(t *testing.T) { eachTransport(t, testTypedFailures) }

func testTypedFailures(t *testing.T, tr transport) {
	c := tr.connect(t, typedServer(t, archon.ServerConfig{}))
	ctx := context.Background()
	var out text
	if err := archon.Invoke(ctx, c, upper, &text{"cannot be encoded"}, &out); err == nil || !strings.Contains(err.Error(), "as it says") {
		t.Errorf("encode: %v", err)
	}
	wrong := archon.NewUnary("test.Swap", archon.Binary[text](), archon.Binary[text]())
	if err := archon.Invoke(ctx, c, wrong, &text{"15 bytes or so"}, &out); !errors.Is(err, archon.InvalidArgument) {
		t.Errorf("a request that the server cannot decode: %v", err)
	}
	half := archon.NewUnary("test.Upper", archon.Binary[text](), archon.Binary[pair]())
	if err := archon.Invoke(ctx, c, half, &text{"x"}, &pair{}); !errors.Is(err, archon.Internal) {
		t.Errorf("a response that cannot be decoded: %v", err)
	}
	if err := archon.Invoke(ctx, c, archon.NewUnary("test.Count", archon.Binary[pair](), archon.Binary[text]()), &pair{}, &out); !errors.Is(err, archon.Unimplemented) {
		t.Errorf("a stream called as unary: %v", err)
	}
	s, err := archon.OpenStream(ctx, c, archon.NewServerStream("test.Swap", archon.Binary[pair](), archon.Binary[pair]()), &pair{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Recv(&pair{}); !errors.Is(err, archon.Unimplemented) {
		t.Errorf("a unary method opened as a stream: %v", err)
	}
	if err := archon.Handle(archon.NewServer(archon.ServerConfig{}), swap, nil); err == nil {
		t.Error("registered no handler")
	}
}

func TestMetadataTravels(t *testing.T) { eachTransport(t, testMetadataTravels) }

func testMetadataTravels(t *testing.T, tr transport) {
	c := tr.connect(t, typedServer(t, archon.ServerConfig{}))
	var md, reply archon.Metadata
	if err := md.Add("who", "me"); err != nil {
		t.Fatal(err)
	}
	ctx := archon.WithReplyMetadata(archon.WithMetadata(context.Background(), &md), &reply)
	for _, in := range []string{"a", "fail"} { // with responses and with failures
		reply.Reset()
		err := archon.Invoke(ctx, c, upper, &text{in}, &text{})
		if (err != nil) != (in == "fail") {
			t.Errorf("%s: %v", in, err)
		}
		if v, ok := reply.Get("hello"); !ok || string(v) != "me" {
			t.Errorf("%s: reply metadata %q, %v", in, v, ok)
		}
	}
}
