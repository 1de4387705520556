package bemalloc

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/byteexpress/byteexpress/mr"
)

var errRefused = errors.New("registration refused by the test")

// registrar is a device of the tests: it refuses overlaps, unknown and double
// deregistration, and does what its fields say.
type registrar struct {
	t      testing.TB
	base   uint32      // keys start after it
	failAt int         // the n-th Register fails; 0: none
	fail   bool        // every Register fails
	keep   bool        // every Deregister fails
	before func(n int) // called at the start of the n-th Register, from 1

	mu       sync.Mutex
	calls    int
	live     map[uint64]mr.Region // by handle
	released int
}

func newRegistrar(t testing.TB) *registrar {
	r := &registrar{t: t, live: map[uint64]mr.Region{}}
	t.Cleanup(func() {
		if n := len(r.live); n > 0 && !r.keep {
			t.Errorf("%d regions were never deregistered", n)
		}
	})
	return r
}

func (r *registrar) Register(buf []byte, access mr.Access) (mr.Region, error) {
	r.mu.Lock()
	r.calls++
	n := r.calls
	r.mu.Unlock()
	if r.before != nil {
		r.before(n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail || n == r.failAt {
		return mr.Region{}, errRefused
	}
	addr, length := mr.Addr(buf), uint64(len(buf))
	for _, o := range r.live {
		if addr < o.Addr+o.Length && o.Addr < addr+length {
			r.t.Errorf("register %#x+%d overlaps %v", addr, length, o)
		}
	}
	buf[0] |= 0 // faults unless mapped and writable
	buf[len(buf)-1] |= 0
	reg := mr.Region{Addr: addr, Length: length, LKey: mr.LKey(r.base) + mr.LKey(n), RKey: mr.RKey(r.base) + mr.RKey(n) + 1000, Handle: uint64(n)}
	r.live[reg.Handle] = reg
	return reg, nil
}

func (r *registrar) Deregister(reg mr.Region) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live[reg.Handle] != reg {
		r.t.Errorf("deregister of %v, which is not registered", reg)
		return fmt.Errorf("no such region")
	}
	if r.keep {
		return errRefused
	}
	delete(r.live, reg.Handle)
	r.released++
	return nil
}

// regions gives the live registrations.
func (r *registrar) regions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.live)
}

// count gives the calls of Register so far.
func (r *registrar) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}
