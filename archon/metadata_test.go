package archon

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestMetadataBounds(t *testing.T) {
	for _, c := range []struct {
		desc, key, value string
		ok               bool
	}{
		{"plain", "trace-id", "1", true},
		{"no value", "a.b_c", "", true},
		{"any bytes as value", "k", "\x00\xff", true},
		{"longest key", strings.Repeat("k", 255), "", true},
		{"key too long", strings.Repeat("k", 256), "", false},
		{"no key", "", "v", false},
		{"capitals", "Trace", "v", false},
		{"space", "a b", "v", false},
		{"as long as may be", "k", strings.Repeat("v", MaxMetadata-4), true},
		{"a byte longer", "k", strings.Repeat("v", MaxMetadata-3), false},
	} {
		var m Metadata
		err := m.Add(c.key, c.value)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, InvalidArgument) {
			t.Errorf("%s: %v", c.desc, err)
		}
		if v, ok := m.Get(c.key); ok != c.ok || ok && string(v) != c.value {
			t.Errorf("%s: got %q, %v", c.desc, v, ok)
		}
		if m.Empty() == c.ok {
			t.Errorf("%s: Empty is %v", c.desc, m.Empty())
		}
	}
}

func TestMetadataKeepsItsOrderAndCopies(t *testing.T) {
	var m Metadata
	for _, kv := range []string{"a1", "b2", "a3"} {
		if err := m.Add(kv[:1], kv[1:]); err != nil {
			t.Fatal(err)
		}
	}
	wire := bytes.Repeat([]byte{0xee}, m.wireSize())
	m.put(wire)
	if err := checkMetadata(wire); err != nil {
		t.Fatal(err)
	}
	var copied Metadata
	copied.CopyFrom(Metadata{wire})
	if err := copied.Add("c", "4"); err != nil { // behind the zeros it would be lost
		t.Fatal(err)
	}
	got := ""
	for k, v := range copied.All() {
		got += string(k) + string(v)
	}
	if got != "a1b2a3c4" {
		t.Errorf("got %q", got)
	}
	if v, ok := copied.Get("a"); !ok || string(v) != "1" {
		t.Errorf("first a: %q, %v", v, ok)
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte{1, 1, 0, 'k', 'v', 0, 0, 0})
	f.Add([]byte{1, 0xff, 0xff, 'k', 'v', 0, 0, 0})
	f.Add(make([]byte, 8))
	f.Fuzz(func(t *testing.T, b []byte) {
		if checkMetadata(b) != nil {
			return
		}
		var m Metadata
		for k, v := range (Metadata{b}).All() {
			if len(m.b)+3+len(k)+len(v) > MaxMetadata {
				return
			}
			if err := m.Add(string(k), string(v)); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(b, m.b) || len(b)-len(m.b) >= metaAlign {
			t.Errorf("read and written:\n% x, was\n% x", m.b, b)
		}
	})
}
