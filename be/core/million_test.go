package core

import (
	"testing"
)

// million sends so many messages, small ones and some by rendezvous, to a receiver of this
// depth that takes its completions late at random, and gives how many requests found no
// receive. A sender that believes in more receives than there are has no credits in effect.
func million(t *testing.T, messages, depth, believed int, seed uint64) (rnr int) {
	cfg := testConfig()
	cfg.RecvDepth, cfg.PeerDepth = depth, believed
	cfg.Backlog, cfg.PeerBacklog = 1<<16, 1<<16
	w := newWorld(t, seed, cfg)
	a, b := w.sides[0], w.sides[1]
	a.qp.retryRNR, b.qp.retryRNR = true, true
	own, _ := w.open(0)
	sent, ended := 0, 0
	for ended < messages {
		for sent < messages && sent-ended < 100 {
			n := 64
			if sent%10 == 0 {
				n = 1500
			}
			buf, err := w.mem.Alloc(n)
			if err != nil {
				t.Fatal(err)
			}
			key, _ := w.mem.LKey(buf)
			sent++
			a.e.Send(own, buf, key, 0, func(err error) {
				if err != nil {
					t.Fatalf("message %d: %v", ended, err)
				}
				ended++
				w.mem.Free(buf)
			})
		}
		for late := w.rng.IntN(200); late > 0; late-- { // the receiver's processor is elsewhere
			a.qp.carry()
			a.qp.ack()
			a.poll(w.now, true)
			a.poll(w.now, false)
			a.e.Flush(w.now)
			w.check(a)
			w.now++
		}
		for range 100 {
			w.step()
		}
		clear(b.got)
	}
	w.settle()
	rnr = a.qp.rnr + b.qp.rnr
	if believed == cfg.RecvDepth && a.e.Stats().CreditStalls == 0 {
		t.Error("credits never ran out: the test shows nothing")
	}
	if got := b.e.Stats().Received; got != uint64(messages) {
		t.Errorf("%d messages arrived of %d", got, messages)
	}
	w.end()
	return rnr
}

// TestMillionMessages (case C13): whatever the receiver's delays, no request ever finds no receive;
// without credits many do.
func TestMillionMessages(t *testing.T) {
	messages := 1_000_000
	if testing.Short() {
		messages = 20_000
	}
	for _, seed := range seeds(t, 1) {
		for _, r := range []struct{ depth, messages int }{{32, messages}, {4, 20_000}, {5, 20_000}, {7, 20_000}} {
			if n := million(t, r.messages, r.depth, r.depth, seed); n != 0 {
				t.Errorf("BE_SEED=%d: %d requests found no receive of %d", seed, n, r.depth)
			}
		}
		if n := million(t, 5_000, 32, 1<<20, seed); n == 0 {
			t.Errorf("BE_SEED=%d: control without credits: every request found a receive: the test shows nothing", seed)
		}
	}
}

// TestFailedGrantChangesNothing: a request for which the quota has room but memory fails
// takes neither, however often it is tried, and is served when there is memory (case C14).
func TestFailedGrantChangesNothing(t *testing.T) {
	w := newWorld(t, 1, testConfig())
	own, _ := w.open(0)
	a, b := w.sides[0], w.sides[1]
	w.settle()
	free := b.e.transfers.free
	balance, posted := a.e.credits.Balance(), a.e.window.Posted()
	var f flow
	const messages = 5
	for range messages {
		w.send(a, own, &f, 20_000, 0)
	}
	w.mem.fail = true
	refused := 0
	for range 3000 {
		w.step()
		w.mem.fail = true // a step may have ended the lack
		if b.e.Held() > 0 {
			refused++
		}
		if b.quota.used != 0 || b.e.transfers.free != free {
			t.Fatalf("%d bytes of the quota are taken, next transfer %d, was %d", b.quota.used, b.e.transfers.free, free)
		}
	}
	if refused == 0 || b.e.Held() != messages || a.e.window.Posted() != posted {
		t.Fatalf("%d of %d requests wait, %d bytes posted: the test shows nothing", b.e.Held(), messages, a.e.window.Posted())
	}
	w.mem.fail = false
	w.settle()
	if f.calls != messages || len(b.got[own.id]) != messages {
		t.Errorf("%d messages ended and %d arrived of %d", f.calls, len(b.got[own.id]), messages)
	}
	if got := a.e.credits.Balance(); got < balance-16 || b.quota.used != 0 || a.e.window.Posted() != 0 {
		t.Errorf("at rest: credits %d, before %d; %d bytes of the quota, %d posted", got, balance, b.quota.used, a.e.window.Posted())
	}
	w.end()
}
