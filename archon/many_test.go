package archon_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

func TestManyGoroutines(t *testing.T) { eachTransport(t, testManyGoroutines) }

func testManyGoroutines(t *testing.T, tr transport) {
	c := tr.connect(t, archon.EchoServer(t, archon.ServerConfig{}))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var all sync.WaitGroup
	for g := range 32 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(g)))
			for range 40 {
				payload := make([]byte, rng.IntN(10000))
				for i := range payload {
					payload[i] = byte(rng.Uint32())
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				if rng.IntN(8) == 0 { // some give up at once, or in the middle
					time.AfterFunc(time.Duration(rng.IntN(200))*time.Microsecond, cancel)
				}
				got, err := archon.CallOn(t, ctx, c, []archon.Method{archon.EchoMethod, archon.WorkerMethod}[rng.IntN(2)], payload)
				if err == nil && string(got) != string(payload) {
					t.Errorf("response differs")
				}
				if err != nil && !errors.Is(err, archon.Canceled) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
}
