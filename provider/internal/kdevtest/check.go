//go:build linux

package kdevtest

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// patience is how long a test waits for a completion before it fails. It is not a
// measurement: an emulated machine may be slow.
const patience = 60 * time.Second

// NoLeaks fails the test if descriptors or mappings are left at its end.
func NoLeaks(t testing.TB) {
	t.Helper()
	r, w, err := os.Pipe() // the runtime's own descriptors are made for the first of these
	Must(t, err)
	r.Close()
	w.Close()
	fds, maps := OpenFDs(t), mmio.Live()
	t.Cleanup(func() {
		if n := OpenFDs(t); n != fds {
			t.Errorf("%d descriptors open at the end, %d at the start", n, fds)
		}
		if n := mmio.Live(); n != maps {
			t.Errorf("%d mappings at the end, %d at the start", n, maps)
		}
	})
}

// OpenFDs counts the descriptors of this process.
func OpenFDs(t testing.TB) int {
	t.Helper()
	e, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(e)
}

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// CloseLater closes at the end of the test what the test has not closed itself.
func CloseLater(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, cq.ErrClosed) && !errors.Is(err, qp.ErrClosed) && !errors.Is(err, verbs.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
}
