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
		2, 1, 0, 0,
		3, 0, 0, 0,
		0x44, 0x33, 0x22, 0x11, 5, 0, 0, 0,
		8, 7, 6, 5, 4, 3, 2, 1,
		0x40, 0x42, 0x0f, 0, 0, 0, 0, 0,
		0, 0, 0, 0,
		0, 0, 0, 0,
		'a', 'b', 'c',
	}},
	{"response", header{kind: kindResponse, payload: 1, id: 9}, []byte{
		2, 2, 0, 0,
		1, 0, 0, 0,
		9, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0,
		0, 0, 0, 0,
		'r',
	}},
	{"failed response", header{kind: kindResponse, code: ResourceExhausted, flags: flagRetryable, detail: 2, id: 9}, []byte{
		2, 2, 8, 1,
		0, 0, 0, 0,
		9, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		2, 0, 0, 0,
		0, 0, 0, 0,
		'n', 'o',
	}},
	{"cancel", header{kind: kindCancel, id: 1 << 63}, []byte{
		2, 3, 0, 0,
		0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0x80,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0,
		0, 0, 0, 0,
	}},
	{"stream request with metadata", header{kind: kindRequest, flags: flagStream, payload: 1, id: 2, method: 3, window: 0x10000, meta: 8}, []byte{
		2, 1, 0, 4,
		1, 0, 0, 0,
		2, 0, 0, 0, 0, 0, 0, 0,
		3, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 1, 0,
		8, 0, 0, 0,
		1, 2, 0, 'k', 'v', 'w', 0, 0,
		'p',
	}},
	{"one-way request", header{kind: kindRequest, flags: flagOneWay, method: 3}, []byte{
		2, 1, 0, 2,
		0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		3, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0,
		0, 0, 0, 0,
	}},
	{"item", header{kind: kindItem, payload: 2, id: 2}, []byte{
		2, 4, 0, 0,
		2, 0, 0, 0,
		2, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0,
		0, 0, 0, 0,
		'i', 't',
	}},
	{"window", header{kind: kindWindow, id: 2, window: 0x20000}, []byte{
		2, 5, 0, 0,
		0, 0, 0, 0,
		2, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 2, 0,
		0, 0, 0, 0,
	}},
	{"pong", header{kind: kindPong, id: 7, method: 0x0807060504030201}, []byte{
		2, 7, 0, 0,
		0, 0, 0, 0,
		7, 0, 0, 0, 0, 0, 0, 0,
		1, 2, 3, 4, 5, 6, 7, 8,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0,
		0, 0, 0, 0,
	}},
	{"go away", header{kind: kindGoAway, code: Unavailable, detail: 3}, []byte{
		2, 8, 14, 0,
		0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0,
		3, 0, 0, 0,
		0, 0, 0, 0,
		'b', 'y', 'e',
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
	stream, oneWay, item, window, pong, away := goldenMessages[4].b, goldenMessages[5].b, goldenMessages[6].b, goldenMessages[7].b, goldenMessages[8].b, goldenMessages[9].b
	for _, c := range []struct {
		desc string
		b    []byte
		at   int
		to   byte
	}{
		{"version 0", request, 0, 0},
		{"version 1", request, 0, 1},
		{"kind 0", request, 1, 0},
		{"kind 9", cancel, 1, 9},
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
		{"request with a window", request, 32, 1},
		{"stream without a window", stream, 34, 0},
		{"stream with a window of 4 GiB", stream, 35, 0xff},
		{"stream that is one-way", stream, 3, flagStream | flagOneWay},
		{"metadata key of a space", stream, 43, ' '},
		{"metadata key beyond the end", stream, 40, 5},
		{"metadata value beyond the end", stream, 41, 5},
		{"metadata without an end", stream, 47, 1},
		{"metadata of no entry", stream, 40, 0},
		{"metadata of 7 bytes", stream, 36, 7},
		{"one-way with an id", oneWay, 8, 1},
		{"item with a code", item, 2, 1},
		{"item with flags", item, 3, 1},
		{"item with a method", item, 16, 1},
		{"window of 0", window, 34, 0},
		{"window with a payload", window, 4, 1},
		{"pong with time", pong, 24, 1},
		{"go away with an id", away, 8, 1},
		{"go away that is retryable", away, 3, 1},
	} {
		b := bytes.Clone(c.b)
		b[c.at] = c.to
		if _, err := parseHeader(b); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", c.desc, err)
		}
	}
	for desc, h := range map[string]header{
		"ping with a payload":     {kind: kindPing, payload: 1},
		"item with metadata":      {kind: kindItem, meta: 8},
		"success with a detail":   {kind: kindResponse, detail: 1},
		"cancel with a payload":   {kind: kindCancel, payload: 1},
		"detail beyond maxDetail": {kind: kindResponse, code: Unknown, detail: maxDetail + 1},
	} {
		b := make([]byte, h.at()+int(h.payload)+int(h.detail))
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
