package ps

import (
	"errors"
	"testing"
	"time"
)

// TestClientsOfTheFuture: a client that was born far ahead of the shard's clock is refused, so
// that those of now are not when it is forgotten.
func TestClientsOfTheFuture(t *testing.T) {
	now := time.Unix(1e9, 0)
	for ahead, taken := range map[time.Duration]bool{-time.Hour: true, 0: true, mostAhead: true, mostAhead + 1: false} {
		push := testPush(requestID{ClientID{uint64(now.Add(ahead).UnixNano()), 1}, 1}, 3)
		if err := bornAhead(push, now); (err == nil) != taken {
			t.Errorf("%v ahead: %v", ahead, err)
		}
	}
	if err := bornAhead(testPush(requestID{ClientID{1<<64 - 1, 1}, 1}, 3), now); err == nil {
		t.Error("a client of the end of time is taken")
	}
	if err := errors.Join(bornAhead(nil, now), bornAhead(testPush(requestID{}, 3), now)); err != nil {
		t.Errorf("no client: %v", err)
	}
}
