package testdev

import (
	"errors"
	"fmt"
	"testing"

	"github.com/byteexpress/byteexpress/verbs"
)

// skipper notes a skip instead of making one.
type skipper struct {
	testing.TB
	reason string
}

func (s *skipper) Helper()          {}
func (s *skipper) Skip(args ...any) { s.reason = fmt.Sprint(args...) }

func TestSupported(t *testing.T) {
	lacks := &verbs.OpError{Op: "create SRQ", Err: fmt.Errorf("%w (errno)", &verbs.UnsupportedError{Feature: "SRQ", Missing: "rxe"})}
	for err, want := range map[error]string{
		lacks:               "testdev: unsupported: SRQ: not supported by rxe",
		errors.New("other"): "",
		nil:                 "",
	} {
		var s skipper
		if Supported(&s, err); s.reason != want {
			t.Errorf("%v: skipped for %q, want %q", err, s.reason, want)
		}
	}
}
