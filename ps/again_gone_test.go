package ps

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/internal/testnet"
	"github.com/pkg/errors"
)

// TestAgainWithoutShard: a push that failed at two shards is repeated when the map has one of
// them no more: the other one gets its part, once, and the error says what is not known,
// also when the shard is back, which may have been started anew.
func TestAgainWithoutShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New(1)
		var broken atomic.Bool
		var applied [2]atomic.Int32
		m := &Map{Version: 1, By: ByRange, Bounds: []Bound{{0, 0}, {20, 1}}}
		for i := range applied {
			host := fmt.Sprint("s", i)
			s := archon.NewServer(archon.ServerConfig{})
			if err := s.HandleInline(MethodPush, func(*archon.ServerCall) error {
				if broken.Load() {
					return archon.Errorf(archon.Internal, "broken")
				}
				applied[i].Add(1)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			defer serve(t, archon.TCP{Network: n.Host(host)}, host+":1", s)()
			m.Replicas = append(m.Replicas, []channel.Endpoint{{TCP: host + ":1"}})
		}
		c, err := NewMapClient(1, m, channel.Config{Service: "ps", TCP: archon.TCP{Network: n.Host("client")}, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		over := make(chan struct{}, 1)
		p := &PushCall{Keys: []uint64{1, 30}, Gradients: []float32{1, 2}}
		push := func(code archon.Code, first, second int32) {
			t.Helper()
			c.GoPush(p, func(*PushCall) { over <- struct{}{} })
			if <-over; !errors.Is(p.Err, code) || applied[0].Load() != first || applied[1].Load() != second {
				t.Errorf("%v; applied %d times and %d, must be %d and %d", p.Err, applied[0].Load(), applied[1].Load(), first, second)
			}
			p.Again = true
		}
		broken.Store(true)
		push(archon.Internal, 0, 0)
		one := &Map{Version: 2, By: ByRange, Bounds: m.Bounds[:1], Replicas: m.Replicas[:1]}
		if err := c.Update(one); err != nil {
			t.Fatal(err)
		}
		broken.Store(false)
		push(archon.OutOfRange, 1, 0)
		push(archon.OutOfRange, 1, 0)
		back := *m
		back.Version = 3
		if err := c.Update(&back); err != nil {
			t.Fatal(err)
		}
		push(archon.OutOfRange, 1, 0)
		p.Again = false
		c.GoPush(p, func(*PushCall) { over <- struct{}{} })
		if <-over; p.Err != nil || applied[1].Load() != 1 {
			t.Errorf("a new push: %v", p.Err)
		}
	})
}
