package archon

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestErrorMatching(t *testing.T) {
	cause := errors.New("cause")
	err := error(&Error{Code: Unavailable, Message: "connection lost", Cause: cause})
	for _, c := range []struct {
		target error
		want   bool
	}{{Unavailable, true}, {Internal, false}, {cause, true}, {context.Canceled, false}, {errors.New("cause"), false}} {
		if errors.Is(err, c.target) != c.want || errors.Is(fmt.Errorf("wrapped: %w", err), c.target) != c.want {
			t.Errorf("Is(%v, %v) is not %v", err, c.target, c.want)
		}
	}
	if !errors.Is(errDeadline, context.DeadlineExceeded) || errors.Is(errDeadline, context.Canceled) {
		t.Error("a deadline does not match the context's error")
	}
}

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Code
	}{
		{nil, OK}, {NotFound, NotFound}, {fmt.Errorf("x: %w", NotFound), NotFound}, {errors.New("x"), Unknown},
		{Errorf(Aborted, "x"), Aborted}, {context.Canceled, Canceled}, {fmt.Errorf("x: %w", context.DeadlineExceeded), DeadlineExceeded},
	} {
		if got := CodeOf(c.err); got != c.want {
			t.Errorf("CodeOf(%v) = %v, want %v", c.err, got, c.want)
		}
	}
	if len(codeNames) != int(maxCode)+1 || maxCode.String() != "Unauthenticated" || Code(99).Error() != "Code(99)" {
		t.Error("the names of codes are off")
	}
}
