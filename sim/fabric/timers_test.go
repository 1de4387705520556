package fabric

import (
	"slices"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// rnrMillis are the times of the RNR codes in ms (IBTA 1.4, table 45).
var rnrMillis = [32]float64{
	655.36, .01, .02, .03, .04, .06, .08, .12, .16, .24, .32, .48, .64, .96, 1.28, 1.92,
	2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
}

// failing posts a SEND that nobody receives, and gives the time until it failed.
func failing(t *testing.T, change func(*qp.Path), rnr qp.RNRTimer, crash bool, want cq.Status) des.Time {
	t.Helper()
	f, err := Pair(Config{Seed: 1}, Link{Gbps: 100, Delay: 10 * des.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	x, y := f.join(t, 0, 1, 64, change)
	if err := y.q.Modify(&qp.Attr{RNRTimer: rnr}, qp.MaskRNRTimer); err != nil {
		t.Fatal(err)
	}
	runTo(t, f, des.Microsecond) // no NIC runs for another reason when the request is posted
	if crash {
		f.Host(1).Crash()
	}
	var end des.Time
	x.done = func(c cq.Completion) {
		if c.Status != want {
			t.Errorf("it ended with %v, want %v", c.Status, want)
		}
		end = f.k.Now() - des.Microsecond
	}
	if _, err := x.q.PostSend([]qp.SendWR{{Opcode: qp.Send, Flags: qp.Signaled, SGEs: x.sge(64)}}); err != nil {
		t.Fatal(err)
	}
	runTo(t, f, des.Never)
	if end == 0 {
		t.Fatal("it did not end")
	}
	return end
}

// TestRNRCodes: a sender whose peer has no receive posted waits exactly the time of
// the peer's code before it tries again.
func TestRNRCodes(t *testing.T) {
	for code, ms := range rnrMillis {
		path := func(tries uint8) func(*qp.Path) {
			return func(p *qp.Path) {
				p.RNRRetry, p.NoRNRRetry, p.AckTimeout = tries, tries == 0, 31
			}
		}
		// The answer to the first try takes as long as that to the next, but for the
		// doorbell. A NIC counts in nanoseconds.
		first := failing(t, path(0), qp.RNRTimer(code), false, cq.RNRRetryExceededError)
		waited := failing(t, path(1), qp.RNRTimer(code), false, cq.RNRRetryExceededError) - 2*first + DefaultTxLatency
		if want := des.Time(ms * float64(des.Millisecond)); waited < want-2*des.Nanosecond || waited > want+2*des.Nanosecond {
			t.Errorf("code %d: it waits %v, want %v", code, waited.Duration(), want.Duration())
		}
	}
}

// TestTimeouts: a peer that is gone is noticed after exactly the retries' timeouts of
// 4.096 us times a power of two each.
func TestTimeouts(t *testing.T) {
	for _, timeout := range []qp.AckTimeout{1, 8, 14, 20} {
		for _, retries := range []uint8{0, 1, 7} {
			got := failing(t, func(p *qp.Path) { p.AckTimeout, p.RetryCount, p.NoRetry = timeout, retries, retries == 0 }, 1, true, cq.RetryExceededError)
			tries := 1 + int(retries)
			want := DefaultTxLatency + des.Time(tries)*(4096*des.Nanosecond<<timeout+des.Nanosecond) // a last look at the answers
			if got < want-des.Time(tries)*des.Nanosecond || got > want+des.Nanosecond {
				t.Errorf("timeout %d, %d tries: noticed after %v, want %v", timeout, tries, got.Duration(), want.Duration())
			}
		}
	}
}

// TestFlush: when retries end, everything posted is completed in order: the oldest
// with the cause, the rest as flushed, sends before receives.
func TestFlush(t *testing.T) {
	f, err := Pair(Config{Seed: 1}, Link{Gbps: 100, Delay: 10 * des.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	x, y := f.join(t, 0, 1, 64, func(p *qp.Path) { p.AckTimeout = 1 })
	for i := range 5 {
		if _, err := x.q.PostRecv([]qp.RecvWR{{ID: uint64(100 + i), SGEs: x.sge(64)}}); err != nil {
			t.Fatal(err)
		}
	}
	f.Host(1).Crash()
	for i := range 10 { // every other one unsignaled: failures are told of all the same
		w := qp.SendWR{ID: uint64(i), Opcode: qp.Write, SGEs: x.sge(64), RemoteAddr: y.reg.Addr, RKey: y.reg.RKey}
		if i%2 == 0 {
			w.Flags = qp.Signaled
		}
		if _, err := x.q.PostSend([]qp.SendWR{w}); err != nil {
			t.Fatal(err)
		}
	}
	var ids []uint64
	var statuses []cq.Status
	x.done = func(c cq.Completion) { ids, statuses = append(ids, c.ID), append(statuses, c.Status) }
	runTo(t, f, des.Of(time.Second))
	if want := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 101, 102, 103, 104}; !slices.Equal(ids, want) {
		t.Errorf("completed %v, want %v", ids, want)
	}
	for i, s := range statuses {
		if want := cq.WRFlushError; i > 0 && s != want || i == 0 && s != cq.RetryExceededError {
			t.Errorf("completion %d: %v", i, s)
		}
	}
}
