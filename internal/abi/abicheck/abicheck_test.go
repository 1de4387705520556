package abicheck

import (
	"strings"
	"testing"
)

// The check itself must be able to fail.
func TestCheckFails(t *testing.T) {
	tables := &Tables{
		constants: map[string]string{"CMD": "9"},
		fields:    map[string][2]int{"s": {0, 40}, "s.start": {8, 8}},
	}
	for _, tt := range []struct{ line, want string }{
		{"a = 9 // CMD", ""},
		{"a = 8 // CMD", "C has CMD = 9"},
		{"a = 40 // s", ""},
		{"a = 41 // s", "size of s is 40"},
		{"a abi.U64 = 8 // s.start", ""},
		{"a abi.U64 = 16 // s.start", "offset of s.start is 8"},
		{"a abi.U32 = 8 // s.start", "has 8 bytes"},
		{"a = 8 // s.start", "needs a type"},
		{"a = 9 // OTHER", "in C"},
		{"a = 9", "C name"},
		{"a = 4 + 5 // CMD", "must be a number"},
	} {
		_, errs := check(tables, "x.go", "package x\nconst (\n"+tt.line+"\n)\n")
		got := ""
		if len(errs) > 0 {
			got = errs[0].Error()
		}
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: error %q, want %q", tt.line, got, tt.want)
		}
	}
}
