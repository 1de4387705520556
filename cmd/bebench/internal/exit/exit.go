// Package exit maps errors to bebench's exit statuses.
package exit

import (
	"errors"
	"fmt"
)

// Exit statuses of the command. Scripts rely on them.
const (
	Done      = 0
	Usage     = 1 // the command line is wrong
	Failed    = 2 // set-up, device or peer failed, or the run was interrupted
	Threshold = 3 // a --min or --max was missed
	Mismatch  = 4 // received data differ from what was sent
)

// Error is an error with the exit status that it leads to.
type Error struct {
	Code int
	Err  error
}

// Error is the cause's text.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Usagef makes an error of the command line.
func Usagef(format string, args ...any) error {
	return &Error{Usage, fmt.Errorf(format, args...)}
}

// Thresholdf makes the error of a result that misses what the user asked for.
func Thresholdf(format string, args ...any) error {
	return &Error{Threshold, fmt.Errorf(format, args...)}
}

// Mismatchf makes the error of data that arrived wrong.
func Mismatchf(format string, args ...any) error {
	return &Error{Mismatch, fmt.Errorf(format, args...)}
}

// Code is the exit status for err: of several joined errors the gravest, and
// Failed for an error that carries none.
func Code(err error) int {
	if err == nil {
		return Done
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		worst := Done
		for _, e := range j.Unwrap() {
			if c := Code(e); gravity[c] > gravity[worst] {
				worst = c
			}
		}
		return worst
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Failed
}

// gravity orders the statuses: wrong data is worse than no data, and both are
// worse than slow data.
var gravity = [...]int{Done: 0, Threshold: 1, Usage: 2, Failed: 3, Mismatch: 4}
