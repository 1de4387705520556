package mr

import "fmt"

// Window is a memory window of type 2 (IBTA 1.4, 10.6.7.2): a remote key that a
// work request binds to a piece of a region, and another takes back, without the
// cost of registering. It is a plain value of the protection domain that made it;
// whoever binds it keeps the key that is in force.
type Window struct {
	RKey   RKey   // before the first bind: the key that the first bind replaces
	Handle uint64 // the domain's own; opaque to everyone else
}

// String names the window for errors and logs.
func (w Window) String() string { return fmt.Sprintf("mw[rkey %#x]", uint32(w.RKey)) }

// Next is the key to bind a window with whose key is k: the low byte belongs to the
// owner of the window, and must differ from bind to bind so that a peer's old key
// is refused.
func (k RKey) Next() RKey { return k&^0xff | (k+1)&0xff }
