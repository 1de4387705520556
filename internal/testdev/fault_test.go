package testdev

import "testing"

func TestFaultRange(t *testing.T) {
	for _, tt := range []struct {
		from, before, release string
		want                  bool
	}{
		{"", "6.1", "5.10.0-46-amd64", true},
		{"", "6.1", "6.1.0-57-arm64", false},
		{"5.10", "5.11", "5.4.0", false},
		{"5.10", "5.11", "5.10", true},
		{"6.15", "", "6.2.0", false},
		{"6.15", "", "6.12.118+deb13-amd64", false},
		{"6.15", "", "7.2.13+deb14-amd64", true},
		{"6.15", "", "6.15-rc3", true},
		{"6.15", "", "", false},
		{"", "", "", false},
		{"", "", "not a kernel", false},
	} {
		if got := (Fault{From: tt.from, Before: tt.before}).in(tt.release); got != tt.want {
			t.Errorf("from %q before %q: in %q is %t", tt.from, tt.before, tt.release, got)
		}
	}
}
