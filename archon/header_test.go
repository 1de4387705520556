package archon

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// One message of each kind, field by field as header.go draws them.
var goldenMessages = []struct {
	desc string
	h    header
	b    []byte
}{
	{"request", header{kind: kindRequest, payload: 3, id: newCallID(0x11223344, 5), method: 0x0102030405060708, timeout: time.Millisecond}, []byte{
		1, 1, 0, 0,
		3, 0, 0, 0,
		0x44, 0x33, 0x22, 0x11, 5, 0, 0, 0,
		8, 7, 6, 5, 4, 3, 2, 1,
		0x40, 0x42, 0x0f, 0, 0, 0, 0, 0,
		0, 0, 0, 0,
		0, 0, 0, 0,
		'a', 'b', 'c',
	}},
	{"response", header{kind: kindResponse, payload: 1, id: 9}, []byte{
		1, 2, 0, 0,
		1, 0, 0, 0,
		9, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0,
		0, 0, 0, 0,
		'r',
	}},
	{"failed response", header{kind: kindResponse, code: ResourceExhausted, flags: flagRetryable, detail: 2, id: 9}, []byte{
		1, 2, 8, 1,
		0, 0, 0, 0,
		9, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		2, 0, 0, 0,
		0, 0, 0, 0,
		'n', 'o',
	}},
	{"cancel", header{kind: kindCancel, id: 1 << 63}, []byte{
		1, 3, 0, 0,
		0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0x80,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0,
		0, 0, 0, 0,
	}},
}

func TestHeaderGolden(t *testing.T) {
	for _, g := range goldenMessages {
		got := append(bytes.Repeat([]byte{0xee}, HeaderSize), g.b[HeaderSize:]...)
		g.h.put(got)
		if !bytes.Equal(got, g.b) {
			t.Errorf("%s: put\n% x, want\n% x", g.desc, got, g.b)
		}
		if h, err := parseHeader(g.b); err != nil || h != g.h {
			t.Errorf("%s: parsed %+v, %v, want %+v", g.desc, h, err, g.h)
		}
		for n := range g.b {
			if _, err := parseHeader(g.b[:n]); !errors.Is(err, ErrProtocol) {
				t.Errorf("%s cut to %d bytes: %v", g.desc, n, err)
			}
		}
		if _, err := parseHeader(append(bytes.Clone(g.b), 0)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s with a byte more: %v", g.desc, err)
		}
	}
}

func TestHeaderMisuse(t *testing.T) {
	request, response, failed, cancel := goldenMessages[0].b, goldenMessages[1].b, goldenMessages[2].b, goldenMessages[3].b
	for _, c := range []struct {
		desc string
		b    []byte
		at   int
		to   byte
	}{
		{"version 0", request, 0, 0},
		{"version 2", request, 0, 2},
		{"kind 0", request, 1, 0},
		{"kind 4", request, 1, 4},
		{"request with a code", request, 2, 1},
		{"request with flags", request, 3, 1},
		{"request with negative time", request, 31, 0x80},
		{"reserved field", request, 38, 1},
		{"response with a method", response, 16, 1},
		{"response with time", response, 30, 1},
		{"success that is retryable", response, 3, 1},
		{"unknown code", failed, 2, 17},
		{"unknown flag", failed, 3, 3},
		{"payload of 4 GiB", request, 7, 0xff},
		{"detail of 4 GiB", failed, 35, 0xff},
		{"cancel with time", cancel, 24, 1},
	} {
		b := bytes.Clone(c.b)
		b[c.at] = c.to
		if _, err := parseHeader(b); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", c.desc, err)
		}
	}
	for desc, h := range map[string]header{
		"request with a detail":   {kind: kindRequest, detail: 1},
		"success with a detail":   {kind: kindResponse, detail: 1},
		"cancel with a payload":   {kind: kindCancel, payload: 1},
		"detail beyond maxDetail": {kind: kindResponse, code: Unknown, detail: maxDetail + 1},
	} {
		b := make([]byte, HeaderSize+int(h.payload)+int(h.detail))
		h.put(b)
		if _, err := parseHeader(b); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", desc, err)
		}
	}
}

func FuzzHeader(f *testing.F) {
	for _, g := range goldenMessages {
		f.Add(g.b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		again := bytes.Clone(b)
		h.put(again)
		if !bytes.Equal(again, b) {
			t.Errorf("parsed and put:\n% x, was\n% x", again, b)
		}
	})
}

func TestMethodIDs(t *testing.T) {
	// FNV-1a test vectors (Fowler, Noll, Vo: draft-eastlake-fnv, appendix C).
	for name, id := range map[string]uint64{"": 0xcbf29ce484222325, "a": 0xaf63dc4c8601ec8c, "foobar": 0x85944171f73967e8} {
		if got := NewMethod(name); got.id != id || got.String() != name {
			t.Errorf("%q: %#x, want %#x", name, got.id, id)
		}
	}
}
