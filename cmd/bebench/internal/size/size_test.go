package size

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int
		err  string
	}{
		{"1", 1, ""},
		{"4096", 4096, ""},
		{"64K", 65536, ""},
		{"64KiB", 65536, ""},
		{"1m", 1 << 20, ""},
		{"2147483647", Max, ""},
		{"1G", 1 << 30, ""},
		{"0", 0, "1 to 2147483647"},
		{"2147483648", 0, "1 to 2147483647"},
		{"2G", 0, "1 to 2147483647"},
		{"-5", 0, "1 to 2147483647"},
		{"99999999999999999999", 0, "1 to 2147483647"},
		{"", 0, "want a number"},
		{"K", 0, "want a number"},
		{"12Q", 0, "want a number"},
		{"1KMB", 0, "want a number"},
		{"0x10", 0, "want a number"},
	} {
		got, err := Parse(tt.in)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("Parse(%q) = %d, %v; want %d, error with %q", tt.in, got, err, tt.want, tt.err)
		}
	}
}

func TestOrZero(t *testing.T) {
	n := OrZero(7)
	for in, want := range map[string]OrZero{"0": 0, "1K": 1024, "9": 9} {
		if err := n.Set(in); err != nil || n != want {
			t.Errorf("Set(%q): %d, %v, want %d", in, n, err, want)
		}
	}
	for _, in := range []string{"", "-1", "x"} {
		if n.Set(in) == nil {
			t.Errorf("Set(%q): no error", in)
		}
	}
}
