package core

// Window is the static send window: a bound on the payload bytes of fragments
// that are posted and not completed. It protects the fabric, as credits protect
// the peer's receives; each is checked by itself.
type Window struct {
	limit  int
	posted int
}

// NewWindow makes a window of limit bytes.
func NewWindow(limit int) Window { return Window{limit: limit} }

// Room reports whether n more bytes may be posted. A fragment longer than the
// whole window passes when it is alone.
func (w *Window) Room(n int) bool { return w.posted == 0 || w.posted+n <= w.limit }

// Take counts n posted bytes.
func (w *Window) Take(n int) { w.posted += n }

// Return counts n completed bytes.
func (w *Window) Return(n int) { w.posted -= n }

// Posted is the number of bytes posted and not completed.
func (w *Window) Posted() int { return w.posted }
