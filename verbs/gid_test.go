package verbs

import (
	"encoding/json"
	"net/netip"
	"testing"
)

func TestGID(t *testing.T) {
	for _, tt := range []struct {
		text            string
		gid             GID
		addr            string
		v4, link, empty bool
	}{
		{"::", GID{}, "::", false, false, true},
		{"::ffff:10.9.0.1", GID{10: 0xff, 11: 0xff, 12: 10, 13: 9, 15: 1}, "10.9.0.1", true, false, false},
		{"fe80::1", GID{0: 0xfe, 1: 0x80, 15: 1}, "fe80::1", false, true, false},
		{"2001:db8::8:9", GID{0: 0x20, 1: 1, 2: 0x0d, 3: 0xb8, 13: 8, 15: 9}, "2001:db8::8:9", false, false, false},
	} {
		g := tt.gid
		if g.String() != tt.text || g.Addr() != netip.MustParseAddr(tt.addr) {
			t.Errorf("%x: %v, address %v, want %s, %s", g[:], g, g.Addr(), tt.text, tt.addr)
		}
		if g.IsIPv4() != tt.v4 || g.IsLinkLocal() != tt.link || g.IsZero() != tt.empty {
			t.Errorf("%v: IPv4 %v, link-local %v, zero %v", g, g.IsIPv4(), g.IsLinkLocal(), g.IsZero())
		}
		var got GID
		if err := got.UnmarshalText([]byte(tt.text)); err != nil || got != g {
			t.Errorf("%s: read as %v, %v", tt.text, got, err)
		}
	}
	var g GID
	if err := g.UnmarshalText([]byte("10.9.0.1")); err != nil || !g.IsIPv4() || g.String() != "::ffff:10.9.0.1" {
		t.Errorf("plain IPv4: %v, %v", g, err)
	}
}

func TestGIDRefused(t *testing.T) {
	for _, text := range []string{"", "x", "::1%eth0", "fe80::1%1", "10.9.0.1/24", "10.9.0", "1:2:3:4:5:6:7:8:9", " ::1"} {
		g := GID{15: 7}
		if err := g.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: read as %v", text, g)
		}
		if g != (GID{15: 7}) {
			t.Errorf("%q: refused, but the GID became %v", text, g)
		}
	}
}

func TestGIDInJSON(t *testing.T) {
	want := struct{ GID GID }{GID{10: 0xff, 11: 0xff, 12: 10, 15: 1}}
	b, err := json.Marshal(want)
	if err != nil || string(b) != `{"GID":"::ffff:10.0.0.1"}` {
		t.Fatalf("%s, %v", b, err)
	}
	got := want
	got.GID = GID{}
	if err := json.Unmarshal(b, &got); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
}

// What a peer's hello has as a GID: either refused, or it comes back the same
// from its own text.
func FuzzGID(f *testing.F) {
	for _, s := range []string{"", "::", "::ffff:10.9.0.1", "10.9.0.1", "fe80::1", "fe80::1%eth0", "2001:db8::1", "::ffff:0:0", "1::2::3"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var g, again GID
		if g.UnmarshalText(text) != nil {
			return
		}
		out, err := g.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.UnmarshalText(out); err != nil || again != g {
			t.Errorf("%q: %v, written as %q, read as %v, %v", text, g, out, again, err)
		}
	})
}
