package archon

import (
	"bytes"
	"errors"
	"testing"
)

func makeBundle(messages ...[]byte) []byte {
	b, n := make([]byte, bundleBytes), bundleHeader
	for _, m := range messages {
		n = appendBundled(b, n, m)
	}
	putBundleHeader(b, len(messages))
	return b[:n]
}

func TestBundleGolden(t *testing.T) {
	want := []byte{
		0xb1, 0, 3, 0,
		1, 0, 0, 0, 'a', 0, 0, 0,
		0, 0, 0, 0,
		5, 0, 0, 0, 'h', 'e', 'l', 'l', 'o', 0, 0, 0,
	}
	got := makeBundle([]byte("a"), nil, []byte("hello"))
	if !bytes.Equal(got, want) {
		t.Errorf("bundle\n% x, want\n% x", got, want)
	}
	var parts []string
	if err := eachBundled(want, func(m []byte) { parts = append(parts, string(m)) }); err != nil || len(parts) != 3 || parts[0] != "a" || parts[2] != "hello" {
		t.Errorf("cut into %q, %v", parts, err)
	}
	for n := range want {
		if err := eachBundled(want[:n], func([]byte) {}); !errors.Is(err, ErrProtocol) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	for desc, b := range map[string][]byte{
		"a word more":        append(bytes.Clone(want), 0, 0, 0, 0),
		"a message too long": makeBundle(make([]byte, bundledBytes+1)),
		"no message":         makeBundle(),
		"reserved byte":      {0xb1, 1, 1, 0, 0, 0, 0, 0},
		"length of 4 GiB":    {0xb1, 0, 1, 0, 0xff, 0xff, 0xff, 0xff},
	} {
		if err := eachBundled(b, func([]byte) {}); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", desc, err)
		}
	}
	if isBundle(goldenMessages[0].b) || !isBundle(want) || isBundle(nil) {
		t.Error("a bundle is not told from a message")
	}
}

func FuzzBundle(f *testing.F) {
	f.Add(makeBundle([]byte("a"), nil, []byte("hello")))
	f.Add([]byte{0xb1, 0, 1, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		var messages [][]byte
		total := bundleHeader
		err := eachBundled(b, func(m []byte) {
			messages = append(messages, m)
			total += bundledSize(len(m))
		})
		if err != nil || total > bundleBytes {
			return
		}
		again := makeBundle(messages...)
		if len(again) != len(b) || again[0] != b[0] || again[2] != b[2] || again[3] != b[3] {
			t.Errorf("cut and bundled:\n% x, was\n% x", again, b)
		}
		n := 0
		if err := eachBundled(again, func(m []byte) {
			if !bytes.Equal(m, messages[n]) {
				t.Errorf("message %d is % x, was % x", n, m, messages[n])
			}
			n++
		}); err != nil {
			t.Error(err)
		}
	})
}
