package verbs

import (
	"errors"
	"syscall"
	"testing"
)

func TestUnsupportedError(t *testing.T) {
	for want, e := range map[string]*UnsupportedError{
		"dmabuf memory regions: not supported by kernel 5.10 (needs kernel 5.12 or later)": {"dmabuf memory regions", "kernel 5.10", "kernel 5.12"},
		"uverbs: not supported by windows":                                                 {Feature: "uverbs", Missing: "windows"},
	} {
		var as *UnsupportedError
		if e.Error() != want || !errors.Is(e, ErrUnsupported) || !errors.As(error(e), &as) {
			t.Errorf("%v, want %q, wrapping ErrUnsupported", e, want)
		}
	}
}

func TestOpError(t *testing.T) {
	for want, e := range map[string]*OpError{
		"rxe0: register memory 4194304 bytes: " + syscall.ENOMEM.Error() + ": raise RLIMIT_MEMLOCK": {"register memory", "rxe0", "4194304 bytes", syscall.ENOMEM, "raise RLIMIT_MEMLOCK"},
		"rxe0: open: " + syscall.EACCES.Error():                                                     {Op: "open", Device: "rxe0", Err: syscall.EACCES},
		"sim: open: " + syscall.EACCES.Error():                                                      {Op: "open", Device: "sim:", Err: syscall.EACCES},
	} {
		if e.Error() != want {
			t.Errorf("%q, want %q", e.Error(), want)
		}
		var errno syscall.Errno
		if !errors.Is(e, e.Err) || !errors.As(error(e), &errno) || errno != e.Err {
			t.Errorf("%v: its errno is not found", e)
		}
	}
}
