package msgtest

import (
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/endstest"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/peak"
)

// TestSocketsShareBooks: a socket more takes no histogram more, and none of its messages
// is lost.
func TestSocketsShareBooks(t *testing.T) {
	const lines = 10_000
	r := &round{p: &Params{Depth: 1}, s: &station{sockets: make([]socket, lines)}, ledger: newLedger(lines)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range lines {
		r.lines = append(r.lines, r.newLine(i))
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / lines; each > 1024 {
		t.Errorf("%d bytes a line", each)
	}
	r.ledger.start(time.Now(), 64, lines)
	for _, l := range r.lines {
		l.completed([]*parcel{{}, {at: time.Now()}})
	}
	if n := r.ledger.latency().Count(); n != lines {
		t.Errorf("%d latencies of %d messages", n, lines)
	}
}

// TestPeakIsOfAllSocketsTogether: what each sends in a time of its own does not add up,
// and what is booked late, all at once, makes no peak.
func TestPeakIsOfAllSocketsTogether(t *testing.T) {
	start := time.Unix(100, 0)
	g := newLedger(2)
	g.start(start, 100, 2)
	now := start
	for i := range 8 { // the one sends in even windows, the other in odd ones
		now = now.Add(peak.Window)
		g.of(i % 2).ops.Add(1000)
		g.look(now)
	}
	want := 1000 * 100 / peak.Window.Seconds()
	if got := g.peak.Bps(); got < want*0.999 || got > want*1.001 {
		t.Errorf("peak = %v, want %v", got, want)
	}
	g.start(start, 100, 2)
	g.of(0).ops.Store(2)
	g.of(1).ops.Store(0)
	if g.look(start.Add(2 * peak.Window)); g.peak.Bps() != 0 {
		t.Errorf("peak = %v of the messages that are posted at a time", g.peak.Bps())
	}
}

// TestTooManyFiles: the error says what to do.
func TestTooManyFiles(t *testing.T) {
	err := explain(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)})
	if !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "ulimit -n") {
		t.Error(err)
	}
	// So does that of the end whose peer met it.
	a, b := net.Pipe()
	server, client := control.New(t.Context(), a, endstest.Limit), control.New(t.Context(), b, endstest.Limit)
	defer server.Close()
	defer client.Close()
	ln, listenErr := net.Listen("tcp", "127.0.0.1:0")
	if listenErr != nil {
		t.Fatal(listenErr)
	}
	ln.Close()
	go func() {
		_ = server.Send("address", ln.Addr().String())
		server.Fail(err)
	}()
	p := defaults()
	p.Transport = OverTCP
	s := &station{transport: &overTCP{}}
	if err := s.connect(t.Context(), client, &p, true); err == nil || !strings.Contains(err.Error(), "ulimit -n") {
		t.Error(err)
	}
}

// TestPeakOfAShortRun is its average.
func TestPeakOfAShortRun(t *testing.T) {
	p := defaults()
	p.Iters, p.Sockets, p.Transport = 2, 50, OverTCP
	s := endstest.Both(t, Run, p)[0]
	if average := float64(s.Bytes) / s.Wall.Seconds(); s.PeakBps != average {
		t.Errorf("peak %v, average %v", s.PeakBps, average)
	}
}
