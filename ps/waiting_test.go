package ps

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/internal/testnet"
)

// TestWaitingBounded: who changes the map is gone when all has been prepared, and more
// pushes than the server has workers are for rows that move. Pushes to others go on; and
// when the change is given up, all are applied, once.
func TestWaitingBounded(t *testing.T) {
	synctest.Test(t, testWaitingBounded)
}

func testWaitingBounded(t *testing.T) {
	const workers, moving = 4, 10
	net := testnet.New(1)
	tcp := archon.TCP{Network: net.Host("s")}
	now := &Map{Version: 1, By: ByRange, Bounds: []Bound{{0, 0}}, Replicas: [][]channel.Endpoint{{{TCP: "s:1"}}}}
	next := &Map{Version: 2, By: ByRange, Bounds: []Bound{{0, 0}, {10, 1}}, Replicas: [][]channel.Endpoint{{{TCP: "s:1"}}, {{TCP: "b:1"}}}}
	s := newTestShard(t, Config{Map: now})
	srv := archon.NewServer(archon.ServerConfig{Workers: workers})
	r, err := s.Replicate(srv, ReplicaConfig{Peers: []string{"s:1"}, Transport: tcp, Lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Register(srv); err != nil {
		t.Fatal(err)
	}
	defer serve(t, tcp, "s:1", srv)()
	defer r.Close()
	c, err := NewMapClient(1, now, channel.Config{Service: "ps", TCP: archon.TCP{Network: net.Host("c")}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	push := func(key uint64, within time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		return c.Push(ctx, []uint64{key}, []float32{-1})
	}
	if err := push(1, time.Second); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	r.group.beginChange(1<<32, next)
	r.group.freeze(1<<32, r.now()+time.Second, r.now())
	r.group.prepare(1<<32, r.group.inc, r.group.change.pos, r.now())
	s.mu.Unlock()
	var all sync.WaitGroup
	for i := range uint64(moving) {
		all.Go(func() {
			if err := push(10+i, time.Minute); err != nil {
				t.Errorf("a push that waits: %v", err)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	for range 10 {
		if err := push(1, 20*time.Millisecond); err != nil {
			t.Errorf("a push to a row that does not move: %v", err)
		}
	}
	s.mu.Lock()
	r.group.abort(1 << 32)
	r.note()
	s.mu.Unlock()
	all.Wait()
	if sum := s.sum(100); sum != 11+moving {
		t.Errorf("%v pushes were applied of %d", sum, 11+moving)
	}
}
