package cpio

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// entry is what read finds in an archive.
type entry struct {
	Name string
	Mode uint32
	Data string
}

// read is a second opinion on the format: fixed-width fields after the magic, name
// and data padded to 4 bytes, until the trailer.
func read(t *testing.T, b []byte) []entry {
	t.Helper()
	pad := func(n int) int { return (n + 3) / 4 * 4 }
	var out []entry
	for at := 0; ; {
		head := string(b[at : at+110])
		if !strings.HasPrefix(head, "070701") {
			t.Fatalf("offset %d: magic %q", at, head[:6])
		}
		field := func(i int) int {
			n, err := strconv.ParseUint(head[6+8*i:14+8*i], 16, 32)
			if err != nil {
				t.Fatalf("offset %d: field %d: %v", at, i, err)
			}
			return int(n)
		}
		mode, size, nameSize := field(1), field(6), field(11)
		name := string(b[at+110 : at+110+nameSize-1])
		if b[at+110+nameSize-1] != 0 {
			t.Fatalf("%s: no zero after the name", name)
		}
		at = pad(at + 110 + nameSize)
		data := string(b[at : at+size])
		at = pad(at + size)
		if name == trailer {
			if at != len(b) {
				t.Errorf("%d bytes after the trailer", len(b)-at)
			}
			return out
		}
		out = append(out, entry{name, uint32(mode), data})
	}
}

func TestWriter(t *testing.T) {
	var buf bytes.Buffer
	w := NewWriter(&buf)
	for _, err := range []error{
		w.File("/init", 0o755, []byte("12345")),
		w.File("a/b/c", 0o644, nil),
		w.File("a/b/./d", 0o600, []byte("1234")),
		w.File("init", 0o644, []byte("a second one does not count")),
		w.Symlink("lib", "usr/lib"),
		w.Dir("/a"),
		w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []entry{
		{"init", 0o100755, "12345"},
		{"a", 0o040755, ""},
		{"a/b", 0o040755, ""},
		{"a/b/c", 0o100644, ""},
		{"a/b/d", 0o100600, "1234"},
		{"lib", 0o120777, "usr/lib"},
	}
	if diff := cmp.Diff(want, read(t, buf.Bytes())); diff != "" {
		t.Error(diff)
	}
}

// full takes n bytes and then no more.
type full struct{ n int }

var errFull = errors.New("full")

func (f *full) Write(b []byte) (int, error) {
	if f.n -= len(b); f.n < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWriteError(t *testing.T) {
	for n := range 400 {
		w := NewWriter(&full{n})
		w.File("dir/file", 0o644, []byte("data"))
		if err := w.Close(); err != nil && !errors.Is(err, errFull) || err == nil && n < 348 {
			t.Fatalf("room for %d bytes: error %v", n, err)
		}
	}
}
