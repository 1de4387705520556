package ps

// pushLog keeps the latest pushes of a replica, in the order in which they were applied,
// numbered from 1, and between them what happened to the map. Its memory is one ring of
// bytes.
type pushLog struct {
	ring    []byte
	entries []logEntry // a ring too, of a power of two
	first   uint64     // position of the oldest that is kept
	next    uint64     // position of the next
	head    int        // in ring, where the next payload goes
}

// entryKind is what an entry of the log is.
type entryKind uint32

const (
	entryPush   entryKind = iota // a push's request
	entryCommit                  // a new map: the ticket of its change, and its text
	entryOpen                    // what a map brought is served: the ticket
	entryAbort                   // a change that was prepared does not come: the ticket
)

// logEntry is where an entry lies.
type logEntry struct {
	kind     entryKind
	from, to int
	peer     int // that it came from; -1: from a client
}

func newPushLog(size int) *pushLog {
	return &pushLog{ring: make([]byte, size), entries: make([]logEntry, 64), first: 1, next: 1}
}

func (l *pushLog) entry(pos uint64) *logEntry { return &l.entries[pos&uint64(len(l.entries)-1)] }

func (l *pushLog) payload(e *logEntry) []byte { return l.ring[e.from:e.to] }

// oldest gives the first position that remains if a payload of n bytes is added.
func (l *pushLog) oldest(n int) (first uint64, at int) {
	first, at = l.first, l.head
	if at+n > len(l.ring) {
		at = 0
		for ; first < l.next && l.entry(first).from >= l.head; first++ { // the rest of the ring is left empty
		}
	}
	for ; first < l.next; first++ {
		if e := l.entry(first); e.to <= at || e.from >= at+n {
			break
		}
	}
	return first, at
}

// add copies an entry into the log, and gives its position. It fits.
func (l *pushLog) add(kind entryKind, payload []byte, peer int) uint64 {
	var at int
	l.first, at = l.oldest(len(payload))
	if l.next-l.first == uint64(len(l.entries)) {
		l.grow()
	}
	copy(l.ring[at:], payload)
	l.head = at + len(payload)
	*l.entry(l.next) = logEntry{kind, at, l.head, peer}
	l.next++
	return l.next - 1
}

func (l *pushLog) grow() {
	old := *l
	l.entries = make([]logEntry, 2*len(old.entries))
	for pos := old.first; pos < old.next; pos++ {
		*l.entry(pos) = *old.entry(pos)
	}
}
