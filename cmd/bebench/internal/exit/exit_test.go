package exit

import (
	"errors"
	"fmt"
	"testing"
)

func TestCode(t *testing.T) {
	for _, tt := range []struct {
		desc string
		err  error
		want int
	}{
		{"nothing", nil, Done},
		{"plain", errors.New("x"), Failed},
		{"wrapped", fmt.Errorf("a: %w", Usagef("b %d", 1)), Usage},
		{"joined takes the gravest", errors.Join(Thresholdf("slow"), Mismatchf("wrong")), Mismatch},
		{"joined, other order", errors.Join(Mismatchf("wrong"), errors.New("gone")), Mismatch},
		{"joined with plain", errors.Join(Thresholdf("slow"), errors.New("gone")), Failed},
	} {
		if got := Code(tt.err); got != tt.want {
			t.Errorf("%s: Code = %d, want %d", tt.desc, got, tt.want)
		}
	}
}
