package be

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestInboxGrows: in order, no further than the backlog, and no new ring once it is
// as large as it is used.
func TestInboxGrows(t *testing.T) {
	for _, backlog := range []int{1, 2, 4, 5, 128} {
		var in inbox
		next, taken := 0, 0
		push := func() bool {
			if !in.push(message{reserved: next}, backlog) {
				return false
			}
			next++
			return true
		}
		for round := range 3 {
			for next-taken < backlog {
				if !push() {
					t.Fatalf("backlog %d, round %d: full at %d", backlog, round, next-taken)
				}
			}
			for taken < next {
				m, ok := in.pop()
				if !ok || m.reserved != taken {
					t.Fatalf("backlog %d: message %d is %d, %v", backlog, taken, m.reserved, ok)
				}
				taken++
			}
			if _, ok := in.pop(); ok || !in.empty() {
				t.Fatalf("backlog %d: more than was put in", backlog)
			}
		}
		if n := len(in.newest.cells); n > 2*max(backlog, firstInbox) {
			t.Errorf("backlog %d: a ring of %d", backlog, n)
		}
		if in.oldest.Load() != in.newest {
			t.Errorf("backlog %d: old rings are kept", backlog)
		}
		for push() {
			if next-taken > 2*max(backlog, firstInbox) {
				t.Fatalf("backlog %d: never full", backlog)
			}
		}
	}
}

// TestInboxConcurrent: many consumers, while the inbox grows; each message once.
func TestInboxConcurrent(t *testing.T) {
	const backlog, messages = 64, 20000
	for range 5 {
		var in inbox
		var taken atomic.Int64
		seen := make([]atomic.Int32, messages)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				last := -1
				for taken.Load() < messages {
					if m, ok := in.pop(); ok {
						taken.Add(1)
						seen[m.reserved].Add(1)
						if m.reserved <= last {
							t.Errorf("message %d after %d", m.reserved, last)
						}
						last = m.reserved
					} else {
						runtime.Gosched()
					}
				}
			})
		}
		for i := range messages {
			for i-int(taken.Load()) >= max(backlog*i/messages, 1) { // more and more at a time
				runtime.Gosched()
			}
			if !in.push(message{reserved: i}, backlog) {
				t.Errorf("full at %d", i)
				taken.Store(messages)
				break
			}
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		for i := range seen {
			if n := seen[i].Load(); n != 1 {
				t.Fatalf("message %d came %d times", i, n)
			}
		}
	}
}
