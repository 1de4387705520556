package ps

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/internal/testnet"
)

// TestTwoRequestsOfARound: shards that lose and get rows are sent two requests in a round.
// They have one connection, which one of the two may end: the race detector is the judge.
func TestTwoRequestsOfARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New(1)
		var asked, atOnce atomic.Int64
		for _, host := range []string{"a", "b"} {
			s := archon.NewServer(archon.ServerConfig{Workers: 8})
			var now atomic.Int64
			err := s.Handle(methodChange, func(call *archon.ServerCall) error {
				if now.Add(1) > 1 {
					atOnce.Add(1)
				}
				defer now.Add(-1)
				time.Sleep(time.Millisecond)
				if asked.Add(1)%3 == 0 {
					return archon.Errorf(archon.Unavailable, "not now")
				}
				return encodeTo(call, (&changeState{}).append(nil))
			})
			if err != nil {
				t.Fatal(err)
			}
			defer serve(t, archon.TCP{Network: n.Host(host)}, host+":1", s)()
		}
		at := [][]channel.Endpoint{{{TCP: "a:1"}}, {{TCP: "b:1"}}}
		from := &Map{Version: 1, By: ByRange, Bounds: []Bound{{0, 0}, {10, 1}}, Replicas: at}
		to := &Map{Version: 2, By: ByRange, Bounds: []Bound{{0, 1}, {10, 0}}, Replicas: at}
		c, err := newCoordinator(from, to, 1, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		d := &rebalancer{c: c, cfg: RebalanceConfig{Transport: archon.TCP{Network: n.Host("coordinator")}, Timeout: time.Second}, lines: make([]line, len(c.members))}
		defer d.close()
		const rounds = 100
		for range rounds {
			c.phase = phaseFinish
			d.round(t.Context())
		}
		if got := asked.Load(); got != 4*rounds || atOnce.Load() != 0 {
			t.Errorf("%d requests in %d rounds, %d beside another one", got, rounds, atOnce.Load())
		}
	})
}
