package archon

import (
	"context"
	"errors"
	"fmt"
)

// Code is the outcome of a call. Names and numbers are those of gRPC
// (google.golang.org/grpc/codes, which takes them from google/rpc/code.proto).
// A Code is an error of its own, so that errors.Is(err, archon.NotFound) works.
type Code uint8

// The outcomes of a call.
const (
	OK                 Code = 0
	Canceled           Code = 1
	Unknown            Code = 2
	InvalidArgument    Code = 3
	DeadlineExceeded   Code = 4
	NotFound           Code = 5
	AlreadyExists      Code = 6
	PermissionDenied   Code = 7
	ResourceExhausted  Code = 8
	FailedPrecondition Code = 9
	Aborted            Code = 10
	OutOfRange         Code = 11
	Unimplemented      Code = 12
	Internal           Code = 13
	Unavailable        Code = 14
	DataLoss           Code = 15
	Unauthenticated    Code = 16

	maxCode = Unauthenticated
)

var codeNames = [...]string{
	"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
	"ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss",
	"Unauthenticated",
}

// String is the code's name.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("Code(%d)", uint8(c))
}

// Error is the code's name.
func (c Code) Error() string { return c.String() }

// Error is a call that failed, here or on the server. Handlers may return one to
// choose the code and message.
type Error struct {
	Code    Code
	Message string // what happened, for a person
	// Retryable says that the call was refused before its handler ran: it may be
	// repeated whatever it does.
	Retryable bool
	// Cause is the local error behind it, if any; it does not travel.
	Cause error
	// Metadata is what the server sent along with its refusal or failure.
	Metadata Metadata
}

// IsRetryable tells whether err says that the call was refused before its handler
// ran: by a server that is overloaded, or goes away, or by this side.
func IsRetryable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Retryable
}

// Errorf makes an Error with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error gives "Code: message: cause".
func (e *Error) Error() string {
	s := e.Code.String()
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is match the code, and the context's errors where the code says
// the same.
func (e *Error) Is(target error) bool {
	switch target {
	case context.DeadlineExceeded:
		return e.Code == DeadlineExceeded
	case context.Canceled:
		return e.Code == Canceled
	}
	c, ok := target.(Code)
	return ok && c == e.Code
}

// Errors of the hot path, made once.
var (
	errDeadline = &Error{Code: DeadlineExceeded, Message: "no response before the call's deadline"}
	errExpired  = &Error{Code: DeadlineExceeded, Message: "deadline passed before the handler ran", Retryable: true}
	errNoMethod = &Error{Code: Unimplemented, Message: "the server has no such method", Retryable: true}
	errQueue    = &Error{Code: ResourceExhausted, Message: "the server's call queue is full: retry later", Retryable: true}
	errMaxCalls = &Error{Code: ResourceExhausted, Message: "the connection has all its calls outstanding: wait for one, or raise MaxCalls", Retryable: true}
	errWait     = &Error{Code: ResourceExhausted, Message: "the server would not get to the call in time: retry later", Retryable: true}
	errMemory   = &Error{Code: ResourceExhausted, Message: "the server holds as many bytes of requests as it may: retry later", Retryable: true}
	errStreamed = &Error{Code: ResourceExhausted, Message: "the server has all its streams under way: retry later", Retryable: true}
	errDraining = &Error{Code: Unavailable, Message: "the server takes no new calls: retry elsewhere", Retryable: true}
	errStreams  = &Error{Code: Unimplemented, Message: "the method streams and the call does not, or the other way round", Retryable: true}
	errNoBuffer = &Error{Code: InvalidArgument, Message: "the request is not a buffer from Alloc, or was sent already"}
	errClosed   = &Error{Code: Unavailable, Message: "the client is closed"}
)

// CodeOf gives the code that a handler's error travels with: that of an Error or
// a Code in its chain, the context's errors by their meaning, else Unknown.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if c, ok := errors.AsType[Code](err); ok {
		return c
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Unknown
}

// status is what of a handler's error goes on the wire.
func status(err error) (code Code, message string, retryable bool) {
	e, ok := errors.AsType[*Error](err)
	switch {
	case ok && err == error(e) && e.Cause == nil:
		message = e.Message
	default:
		message = err.Error()
	}
	code = CodeOf(err)
	if code == OK || code > maxCode {
		code = Unknown // an error never looks like success to the peer
	}
	return code, message, ok && e.Retryable
}
