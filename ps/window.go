package ps

import "slices"

// maxSpans bounds the memory of a window: 16 bytes each. There are about as many as pushes
// of a client are outstanding at a shard that gets keys by a new map, and has them wait meanwhile.
const maxSpans = 1024

// window is which sequence numbers of one client were applied: all in spans, none
// between and above them, and nobody knows up to floor. A client that counts up leaves
// one span; a Push that failed, or is late, leaves a gap. When there are too many, the
// floor rises above the lowest.
type window struct {
	id         ClientID
	floor      uint64
	spans      []span
	prev, next *window // in the order of use
}

// span is the sequence numbers first to last.
type span struct{ first, last uint64 }

// verdict is what is known of a request id.
type verdict uint8

const (
	fresh   verdict = iota // it was not applied
	applied                // it was
	unknown                // it is older than what is remembered
)

// find gives the number of the first span that ends at seq or later.
func (w *window) find(seq uint64) int {
	if n := len(w.spans); n > 0 && w.spans[n-1].last < seq { // most of the time
		return n
	}
	i, _ := slices.BinarySearchFunc(w.spans, seq, func(s span, seq uint64) int {
		if s.last < seq {
			return -1
		}
		return 1
	})
	return i
}

func (w *window) look(seq uint64) verdict {
	if i := w.find(seq); i < len(w.spans) && w.spans[i].first <= seq {
		return applied
	}
	if seq <= w.floor {
		return unknown
	}
	return fresh
}

// add notes that seq, which is fresh, was applied.
func (w *window) add(seq uint64) {
	i := w.find(seq)
	below := i > 0 && w.spans[i-1].last+1 == seq
	above := i < len(w.spans) && w.spans[i].first == seq+1
	switch {
	case below && above:
		w.spans[i-1].last = w.spans[i].last
		w.spans = slices.Delete(w.spans, i, i+1)
	case below:
		w.spans[i-1].last = seq
	case above:
		w.spans[i].first = seq
	default:
		w.spans = slices.Insert(w.spans, i, span{seq, seq})
		w.shrink()
	}
}

// shrink forgets the lowest span if there are too many: a Push of it or of the gap above
// it is refused from here on, since the two cannot be told apart any more.
func (w *window) shrink() {
	if len(w.spans) <= maxSpans {
		return
	}
	w.floor = w.spans[1].first - 1
	w.spans = slices.Delete(w.spans, 0, 1)
}
