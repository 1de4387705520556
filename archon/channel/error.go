package channel

import (
	"fmt"
	"strings"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel/core"
)

// Error is a call that failed, with all that was tried. errors.As finds the
// *archon.Error that decides, and errors.Is its code.
type Error struct {
	Service  string
	Method   string
	Replica  string // of the last attempt; empty: there was none
	Attempts int
	Why      core.Verdict
	Causes   []Cause // what ended each attempt, oldest first, at most maxCauses
	Err      error   // the *archon.Error that the call ends with
}

// Unreached tells whether the call ended because no replica could be reached; if it had no
// attempts, none ever was.
func (e *Error) Unreached() bool { return e.Why == core.NoReplica }

// Cause is the end of one attempt.
type Cause struct {
	Replica string
	Path    core.Path
	Err     error
}

// maxCauses is how many causes an Error keeps: the last ones.
const maxCauses = 5

// Error names service, method, replica, attempts and causes.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "service %q: %s", e.Service, e.Method)
	switch {
	case e.Attempts == 1:
		fmt.Fprintf(&b, ": 1 attempt, at %s", e.Replica)
	case e.Attempts > 1:
		fmt.Fprintf(&b, ": %d attempts, the last at %s", e.Attempts, e.Replica)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	for i, c := range e.Causes {
		if i < len(e.Causes)-1 || c.Err != e.Err {
			fmt.Fprintf(&b, "; %s over %v: %v", c.Replica, c.Path, c.Err)
		}
	}
	return b.String()
}

// Unwrap gives the error that decides.
func (e *Error) Unwrap() error { return e.Err }

// outcomeOf says what an attempt's error means. sent is false when the attempt did not
// leave this side.
func outcomeOf(err error, client *archon.Client, sent bool) core.Outcome {
	if err == nil {
		return core.Answered
	}
	e, ok := err.(*archon.Error)
	switch {
	case !ok:
		return core.Invalid
	case !sent && (e.Retryable || client.Err() != nil):
		return core.Unsent
	case !sent && e.Code == archon.DeadlineExceeded:
		return core.Failed
	case !sent:
		return core.Invalid
	case err == client.Err():
		return core.Lost
	}
	switch e.Code {
	case archon.Unimplemented:
		return core.Answered
	case archon.DeadlineExceeded:
		return core.Failed
	case archon.Canceled:
		return core.Dropped
	}
	if e.Retryable {
		return core.Refused
	}
	switch e.Code {
	case archon.Unavailable, archon.Internal, archon.Unknown, archon.DataLoss, archon.ResourceExhausted:
		return core.Failed
	}
	return core.Answered
}

// Errors that calls end with when no attempt decides, made once.
var (
	errDeadline = &archon.Error{Code: archon.DeadlineExceeded, Message: "no answer before the call's deadline"}
	errClosed   = &archon.Error{Code: archon.Unavailable, Message: "the channel is closed", Retryable: true}
	errGivenUp  = &archon.Error{Code: archon.Canceled, Message: "another attempt was quicker, or the call was given up"}
)

// verdictError is what a call ends with that no attempt decided; last is what ended
// the last attempt.
func verdictError(why core.Verdict, last error) error {
	switch e, ok := last.(*archon.Error); {
	case why == core.Expired:
		return errDeadline
	case why == core.NoReplica:
		return &archon.Error{Code: archon.Unavailable, Message: why.String(), Cause: last, Retryable: true}
	case !ok:
		return &archon.Error{Code: archon.Unavailable, Message: why.String(), Cause: last}
	case why == core.NotRepeatable:
		return last
	default:
		return &archon.Error{Code: e.Code, Message: why.String(), Retryable: e.Retryable, Cause: last, Metadata: e.Metadata}
	}
}
