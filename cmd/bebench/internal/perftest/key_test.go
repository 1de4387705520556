package perftest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/verbs"
)

// keys are as perftest writes them (KEY_PRINT_FMT and KEY_PRINT_FMT_GID).
var keys = []struct {
	text string
	key  Key
}{
	{"0007:0010:00001a:abcdef:00001234:00007f0012345678:00000000\x00",
		Key{LID: 7, Reads: 16, Num: 0x1a, PSN: 0xabcdef, RKey: 0x1234, Addr: 0x7f0012345678}},
	{"0000:0001:000011:5c1db2:00000202:000055d0a5b7a000:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:09:00:01:00000000:\x00",
		Key{Reads: 1, Num: 0x11, PSN: 0x5c1db2, RKey: 0x202, Addr: 0x55d0a5b7a000, Global: true,
			GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 9, 15: 1}}},
}

func TestKey(t *testing.T) {
	for _, tt := range keys {
		if got := string(tt.key.append(nil)); got != tt.text {
			t.Errorf("append: %q\nwant    %q", got, tt.text)
		}
		got, err := parseKey([]byte(tt.text))
		if err != nil || got != tt.key {
			t.Errorf("parse %q: %+v, %v; want %+v", tt.text, got, err, tt.key)
		}
		for n := range len(tt.text) {
			if k, err := parseKey([]byte(tt.text[:n])); err == nil {
				t.Errorf("parse %q: %+v, want an error", tt.text[:n], k)
			}
		}
	}
}

func TestKeyNotHex(t *testing.T) {
	for _, tt := range keys {
		for i := range len(tt.text) - 1 {
			bad := []byte(tt.text)
			bad[i] = 'x'
			if k, err := parseKey(bad); err == nil {
				t.Errorf("parse %q: %+v, want an error", bad, k)
			}
		}
	}
}

func FuzzKey(f *testing.F) {
	for _, tt := range keys {
		f.Add([]byte(tt.text))
	}
	f.Add([]byte(strings.Repeat(":", longKey)))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := parseKey(b)
		if err != nil {
			return
		}
		again, err := parseKey(k.append(nil))
		if err != nil || again != k {
			t.Errorf("%+v from %q reads back as %+v, %v", k, b, again, err)
		}
	})
}

func TestReportFields(t *testing.T) {
	r := Report{SizeBytes: 65536, Iters: 5000, Peak: 1.5, Average: 1.25, MsgRate: 0.1}
	if got := reportOf(r.fields()); got != r {
		t.Errorf("%+v, want %+v", got, r)
	}
}

func FuzzVersion(f *testing.F) {
	f.Add([]byte("6.06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add(bytes.Repeat([]byte{'6'}, versionBytes))
	f.Add([]byte("NaN\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := parseVersion(b); err == nil && (v == "" || !bytes.HasPrefix(b, append([]byte(v), 0))) {
			t.Errorf("%q: version %q", b, v)
		}
	})
}
