package msgtest

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/hist"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/peak"
)

// ledger is where the lines of one end and round book what they completed, in a few
// books: a histogram takes a quarter of a megabyte, which ten thousand sockets would
// rather clear and add up than send messages.
type ledger struct {
	books []book
	began time.Time
	due   atomic.Int64 // when the peak meter wants to be told, since began
	mu    sync.Mutex   // of the meter
	peak  peak.Meter
}

// book is that of the lines whose number leaves the same remainder.
type book struct {
	mu  sync.Mutex
	lat *hist.Recorder
	ops atomic.Int64
	_   [64]byte // another core's book has other lines of the cache
}

// newLedger makes a ledger of so many lines.
func newLedger(lines int) *ledger {
	g := &ledger{books: make([]book, min(lines, 4*runtime.GOMAXPROCS(0)))}
	for i := range g.books {
		g.books[i].lat = hist.New()
	}
	return g
}

// start says when the lines begin, and how many messages of size bytes all of them
// together have posted at a time.
func (g *ledger) start(now time.Time, size, posted int) {
	g.began = now
	g.due.Store(int64(peak.Window))
	g.peak.Start(now, size, posted)
}

// of is the book of a line.
func (g *ledger) of(line int) *book { return &g.books[line%len(g.books)] }

// look tells the peak meter how far all lines are, when it is time.
func (g *ledger) look(now time.Time) {
	at := int64(now.Sub(g.began))
	if at < g.due.Load() || !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	var ops int64
	for i := range g.books {
		ops += g.books[i].ops.Load()
	}
	g.peak.At(now, ops)
	g.due.Store(at + int64(peak.Window)/8) // a window with too few messages goes on
}

// latency adds all books up.
func (g *ledger) latency() *hist.Recorder {
	all := hist.New()
	for i := range g.books {
		all.Merge(g.books[i].lat)
	}
	return all
}
