package main

import "testing"

func TestPickMirrors(t *testing.T) {
	for _, c := range []struct{ uris, main, security string }{
		{"", "", ""},
		{"https://other.example/apt/\n", "", ""},
		{"http://m.example/debian-security/\nhttp://m.example/debian/\nhttp://n.example/debian/\n", "http://m.example/debian/", "http://m.example/debian-security/"},
	} {
		if main, security := pickMirrors(c.uris); main != c.main || security != c.security {
			t.Errorf("%q: %q and %q, want %q and %q", c.uris, main, security, c.main, c.security)
		}
	}
}
