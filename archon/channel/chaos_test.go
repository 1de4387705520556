package channel_test

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/internal/testfault"
)

// numbered is a request that says its number, and notices when it is asked after its
// call was over.
type numbered struct {
	n    uint64
	over atomic.Bool
	t    testing.TB
}

func (r *numbered) Size() int { return 8 }

func (r *numbered) Append(b []byte) ([]byte, error) {
	if r.over.Load() {
		r.t.Error("a request is encoded after its call was over")
	}
	return binary.LittleEndian.AppendUint64(b, r.n), nil
}

// TestChaos has calls of every kind end in every way at once: answered, hedged, timed
// out, cancelled, lost with RDMA or with a server. Each ends once, with its own answer
// or an error, and nothing is left.
func TestChaos(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	p := newRDMAPair(t, testfault.None)
	slow := archon.NewMethod("test.Slow")
	b := startServer(t, "b", handlers{slow: func(call *archon.ServerCall) error {
		time.Sleep(time.Duration(call.Payload()[0]) * 100 * time.Microsecond)
		return nil
	}})
	r := quick()
	r.HedgeQuantile, r.AttemptTimeout, r.RetryBurst, r.Settle = 0.5, 2*time.Millisecond, 1000, 20*time.Millisecond
	ch := newChannel(t, channel.Config{RDMA: p.device, Resolver: channel.Static(p.endpoint, channel.Endpoint{Name: "b", TCP: b.tcp}), Recovery: r, Idempotent: []archon.Method{slow}})
	if _, err := ask(limit(t), ch, echo, ""); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var started, ended, answered atomic.Int64
	for w := range uint64(6) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, w))
			slots := make(chan struct{}, 20)
			for i := uint64(0); ; i++ {
				select {
				case <-stop:
					return
				case slots <- struct{}{}:
				}
				req := &numbered{n: w<<32 | i, t: t}
				call := &channel.Call{Method: echo, Request: req, Idempotent: rng.IntN(2) == 0, Affinity: rng.Uint64N(3), Timeout: time.Duration(1 + rng.Int64N(int64(20*time.Millisecond)))}
				if rng.IntN(4) == 0 {
					call.Method = slow
				}
				started.Add(1)
				ch.Go(call, func(c *channel.Call) {
					if req.over.Swap(true) {
						t.Error("a call ended twice")
					}
					if c.Err == nil {
						answered.Add(1)
						if c.Method == echo && binary.LittleEndian.Uint64(c.Response.Payload()) != req.n {
							t.Errorf("call %#x got another's answer", req.n)
						}
						c.Response.Release()
					}
					ended.Add(1)
					<-slots
				})
				if rng.IntN(4) == 0 {
					time.Sleep(time.Duration(rng.Int64N(int64(time.Millisecond))))
					ch.Cancel(call, archon.Errorf(archon.Aborted, "chaos"))
				}
			}
		})
	}
	for range 4 {
		p.fabric.Partition(p.server, p.client, true)
		time.Sleep(50 * time.Millisecond)
		p.v.s.Close()
		b.stop()
		b.start()
		p.fabric.Partition(p.server, p.client, false)
		time.Sleep(50 * time.Millisecond)
	}
	eventually(t, "a call is answered", func() bool { return answered.Load() > 0 })
	close(stop)
	wg.Wait()
	eventually(t, "all calls end", func() bool { return ended.Load() == started.Load() })
	st := ch.Stats()
	t.Logf("%+v, %d answered", st.CallStats, answered.Load())
	eventually(t, "no attempt is left", func() bool {
		n := 0
		for _, r := range ch.Stats().Replicas {
			n += r.Outstanding
		}
		return n == 0
	})
}
