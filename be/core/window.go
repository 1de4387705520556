package core

import "time"

// Window is the send window of one engine: a bound on the payload bytes of
// fragments that are posted and not completed. It protects the fabric, as credits
// protect the peer's receives; each is checked by itself.
//
// A static window keeps its limit. An adaptive one moves it between a least and a
// most by the delay from the post of a request to its completion. The shortest
// delay ever seen, mostly that of a small message, is the path's own; what is
// above it is queueing, on our port or in a switch. While that stays within the
// target, the limit grows by half the least for each window of bytes completed;
// when it is longer, the limit shrinks by the excess, at most by half, and once a
// round trip (the law of Swift, Kumar et al., SIGCOMM 2020, without its pacing).
// Engines that share a congested port so come to the least together, and one alone
// opens up to what fills the link and the target.
type Window struct {
	limit       int
	posted      int
	least, most int
	target      time.Duration // of queueing; 0: static
	base        time.Duration // the shortest delay seen
	cut         time.Duration // when the limit shrank last
}

// NewWindow makes a window of limit bytes.
func NewWindow(limit int) Window { return Window{limit: limit, least: limit, most: limit} }

// NewAdaptiveWindow makes a window of least to most bytes that aims at queueing for
// the target time. It begins with the least.
func NewAdaptiveWindow(least, most int, target time.Duration) Window {
	return Window{limit: least, least: least, most: most, target: target, base: Never, cut: -1}
}

// Room reports whether n more bytes may be posted. A fragment longer than the
// whole window passes when it is alone.
func (w *Window) Room(n int) bool { return w.posted == 0 || w.posted+n <= w.limit }

// Take counts n posted bytes.
func (w *Window) Take(n int) { w.posted += n }

// Return counts n completed bytes.
func (w *Window) Return(n int) { w.posted -= n }

// Expect opens the window to n bytes, which the receiver counts on. What delays say
// afterwards holds again.
func (w *Window) Expect(n int) { w.limit = max(w.limit, min(n, w.most)) }

// Posted is the number of bytes posted and not completed.
func (w *Window) Posted() int { return w.posted }

// Limit is how many bytes may be posted at the moment.
func (w *Window) Limit() int { return w.limit }

// Sample takes the completion, now, of a request posted at a time, and the n bytes
// that completed with it and are not returned yet. A static window learns nothing.
func (w *Window) Sample(now, posted time.Duration, n int) {
	if w.target == 0 {
		return
	}
	delay := now - posted
	w.base = min(w.base, delay)
	// From the whole target for the least window to half of it for a large one, so
	// that of two that see the same queue the larger gives way.
	excess := delay - w.base - (w.target+w.target*time.Duration(w.least)/time.Duration(w.limit))/2
	switch {
	case n == 0:
	case excess <= 0:
		if 2*w.posted >= w.limit { // else it is not what holds us back
			w.limit = min(w.limit+max(w.least*n/w.limit/2, 1), w.most)
		}
	case posted > w.cut:
		w.cut = now
		w.limit = max(w.limit-int(float64(w.limit)*min(float64(excess)/float64(delay), 0.5)), w.least)
	}
}
