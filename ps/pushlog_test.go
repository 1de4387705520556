package ps

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestPushLogAgainstModel: of entries of any length, the log keeps the latest whole and in
// order, and as many as there is room for: those that it gives up overlap the newest one,
// or what is left empty behind it.
func TestPushLogAgainstModel(t *testing.T) {
	const size = 1000
	rng := rand.New(rand.NewPCG(1, 14))
	l := newPushLog(size)
	var all [][]byte // by position - 1
	for range 20_000 {
		most := 20
		if len(all)/1000%2 == 1 {
			most = size
		}
		p := make([]byte, 1+rng.IntN(most))
		for i := range p {
			p[i] = byte(rng.Uint32())
		}
		first, at := l.oldest(len(p))
		head := l.head
		for pos := l.first; pos < first; pos++ {
			if e := l.entry(pos); (e.from >= at+len(p) || e.to <= at) && (at >= head || e.from < head) {
				t.Fatalf("position %d, bytes %d to %d, is given up for bytes %d to %d behind %d", pos, e.from, e.to, at, at+len(p), head)
			}
		}
		all = append(all, p)
		if pos := l.add(entryKind(len(all)%3), p, len(all)); pos != uint64(len(all)) || l.first != first {
			t.Fatalf("position %d of entry %d, the oldest is %d, it was to be %d", pos, len(all), l.first, first)
		}
		for pos := l.first; pos < l.next; pos++ {
			if e := l.entry(pos); !bytes.Equal(l.payload(e), all[pos-1]) || e.kind != entryKind(pos%3) || e.peer != int(pos) {
				t.Fatalf("after entry %d, entry %d of %d bytes is not what it was: %+v", len(all), pos, len(all[pos-1]), *e)
			}
		}
	}
}
