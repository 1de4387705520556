package wire

import (
	"errors"
	"fmt"
)

// ErrProtocol is wrapped by every error about what a peer sent.
var ErrProtocol = errors.New("protocol error")

// FieldError says which field of a peer's message is wrong.
type FieldError struct {
	Type  Type // 0 when the type itself is not known
	Field string
	Value uint64
	Want  string
}

// Error names the message, the field, its value and what would be right.
func (e *FieldError) Error() string {
	if e.Type == 0 {
		return fmt.Sprintf("%v: %s is %d, want %s", ErrProtocol, e.Field, e.Value, e.Want)
	}
	return fmt.Sprintf("%v: %s of %v is %d, want %s", ErrProtocol, e.Field, e.Type, e.Value, e.Want)
}

// Unwrap gives ErrProtocol.
func (e *FieldError) Unwrap() error { return ErrProtocol }
