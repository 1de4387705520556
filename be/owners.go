package be

import (
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/mr"
)

// OwnerError is a use of a buffer by the application while it belongs to the node, or to
// nobody. With Config.Debug.Check it is the error of what was called, and nothing was done;
// what has no error to give, [Node.Free] and memory that changed on its way, is counted in
// Stats as OwnerErrors, and Close returns the first.
type OwnerError struct {
	What  string // "free", "Post"
	Addr  uint64 // of the memory
	Bytes int    // its length
	Why   string
}

// Error names the call, the memory and the reason.
func (e *OwnerError) Error() string {
	return fmt.Sprintf("be: %s of %d bytes at %#x: %s", e.What, e.Bytes, e.Addr, e.Why)
}

// owners knows who owns each buffer of a node, for Config.Debug.Check. Its methods work on nil,
// and do nothing then: those that each message passes are small enough to be part of their
// callers, which costs a look at the pointer.
type owners struct {
	mu     sync.Mutex
	live   map[uint64]*ownership // by the address of the buffer
	errors uint64
	first  *OwnerError // of those that nobody was told
	seed   maphash.Seed
}

// ownership is who has a buffer: the application, or an engine that goes by its own rules,
// if nothing is set.
type ownership struct {
	bytes  int
	taken  string   // by which call, and from where; the node's until done
	gone   bool     // done was told an error: the node frees it
	shared []string // calls that use it while it stays the application's
}

func newOwners(p *bemalloc.Pool) *owners {
	if !p.Debug().Check {
		return nil
	}
	return &owners{live: map[uint64]*ownership{}, seed: maphash.MakeSeed()}
}

// born notes an allocation.
func (o *owners) born(b []byte) {
	if o != nil {
		o.add(b)
	}
}

func (o *owners) add(b []byte) {
	if cap(b) > 0 {
		o.mu.Lock()
		o.live[mr.Addr(b[:1])] = &ownership{bytes: cap(b)}
		o.mu.Unlock()
	}
}

// dead notes that a buffer is free.
func (o *owners) dead(b []byte) {
	if o != nil {
		o.remove(b)
	}
}

func (o *owners) remove(b []byte) {
	if cap(b) > 0 {
		o.mu.Lock()
		delete(o.live, mr.Addr(b[:1]))
		o.mu.Unlock()
	}
}

// find gives the buffer that b lies in, nil if that is free, and whether b is its start.
func (o *owners) find(b []byte) (w *ownership, start bool) {
	at := mr.Addr(b)
	if w := o.live[at]; w != nil {
		return w, true
	}
	for from, w := range o.live {
		if from < at && at < from+uint64(w.bytes) {
			return w, false
		}
	}
	return nil, false
}

// why says why the application may not give a buffer away or free it; empty: it may.
func (w *ownership) why() string {
	switch {
	case w == nil:
		return "it is free"
	case w.gone:
		return "the node takes it back, since an error was told, after " + w.taken
	case w.taken != "":
		return "it is the node's, until done is called, since " + w.taken
	case len(w.shared) > 0:
		return "it is in use since " + w.shared[0]
	}
	return ""
}

// mayFree reports whether the application may free a buffer, and keeps the error if not.
// What is free already is not for here.
func (o *owners) mayFree(b []byte) bool { return o == nil || o.asApplication(b) }

func (o *owners) asApplication(b []byte) bool {
	if cap(b) == 0 {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.live[mr.Addr(b[:1])]
	if w == nil || w.why() == "" {
		return true
	}
	o.report("free", b, w.why())
	return false
}

// count is how many errors nobody was told.
func (o *owners) count() uint64 {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.errors
}

// err is the first of them.
func (o *owners) err() error {
	if o.count() == 0 {
		return nil
	}
	return o.first
}

func (o *owners) report(what string, b []byte, why string) {
	o.errors++
	if o.first == nil {
		o.first = &OwnerError{what, mr.Addr(b[:1]), len(b), why}
	}
}

// give makes a buffer the node's until the done that it returns is called. reads says that
// the device only reads it: then it must not have changed by then.
func (o *owners) give(what string, b []byte, reads bool, done func(error)) (func(error), error) {
	if o == nil {
		return done, nil
	}
	return o.take(what, b, reads, done)
}

func (o *owners) take(what string, b []byte, reads bool, done func(error)) (func(error), error) {
	if len(b) == 0 {
		return done, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	w, start := o.find(b)
	why := w.why()
	if why == "" && !start {
		why = "it does not begin with a buffer, but within one"
	}
	if why != "" {
		return nil, &OwnerError{what, mr.Addr(b), len(b), why}
	}
	w.taken = what + caller()
	sum := maphash.Bytes(o.seed, b)
	return func(err error) {
		o.mu.Lock()
		if w.gone = err != nil; !w.gone {
			if reads && maphash.Bytes(o.seed, b) != sum {
				o.report("write", b, w.why())
			}
			w.taken = ""
		}
		o.mu.Unlock()
		tell(done, err)
	}, nil
}

// back undoes give.
func (o *owners) back(b []byte) {
	if o != nil && len(b) > 0 {
		o.mu.Lock()
		if w := o.live[mr.Addr(b)]; w != nil {
			w.taken = ""
		}
		o.mu.Unlock()
	}
}

// share notes that memory of the application is used until the end that it returns is called.
// reads says that it must not change before.
func (o *owners) share(what string, bs [][]byte, reads bool) (end func(), err error) {
	if o == nil {
		return func() {}, nil
	}
	what += caller()
	o.mu.Lock()
	defer o.mu.Unlock()
	var in []*ownership
	for _, b := range bs {
		if len(b) == 0 {
			continue
		}
		w, _ := o.find(b)
		if w == nil || w.taken != "" {
			return nil, &OwnerError{what, mr.Addr(b), len(b), w.why()}
		}
		in = append(in, w)
	}
	for _, w := range in {
		w.shared = append(w.shared, what)
	}
	sum := o.sum(bs, reads)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.sum(bs, reads) != sum {
			o.report("write", bs[0], "it is in use since "+what)
		}
		for _, w := range in {
			i := slices.Index(w.shared, what)
			w.shared = slices.Delete(w.shared, i, i+1)
		}
	}, nil
}

func (o *owners) sum(bs [][]byte, reads bool) uint64 {
	var h maphash.Hash
	h.SetSeed(o.seed)
	for i := 0; reads && i < len(bs); i++ {
		h.Write(bs[i])
	}
	return h.Sum64()
}

// caller is where the application called this package.
func caller() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "github.com/byteexpress/byteexpress/be.") {
			return fmt.Sprintf(" by %s %s:%d", f.Function, f.File, f.Line)
		}
		if !more {
			return ""
		}
	}
}
