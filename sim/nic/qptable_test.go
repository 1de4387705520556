package nic

import (
	"math/rand/v2"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
)

// TestQPTable: whatever comes and goes, the queue pairs that are there are found, by
// their numbers alone.
func TestQPTable(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := &NIC{nextNum: qp.Num(0xffffff - rng.Uint32N(300))} // numbers wrap around
		live := map[qp.Num]*QP{}
		for range 1000 {
			if rng.IntN(3) > 0 && len(live) < 100 {
				q := &QP{busy: busy{num: n.newNum()}}
				if live[q.num] != nil || q.num < 2 || q.num >= 0xffffff {
					t.Fatalf("seed %d: number %#x is given out", seed, q.num)
				}
				n.qps.add(q)
				live[q.num] = q
			} else {
				for num, q := range live {
					n.qps.remove(q)
					delete(live, num)
					break
				}
			}
			if probe := qp.Num(rng.Uint32N(1 << 24)); n.qps.get(probe) != live[probe] {
				t.Fatalf("seed %d: %#x is found", seed, probe)
			}
			if n.qps.n != len(live) {
				t.Fatalf("seed %d: %d of %d", seed, n.qps.n, len(live))
			}
		}
		for num, q := range live {
			if n.qps.get(num) != q || n.qps.get(num^1<<20) != nil {
				t.Fatalf("seed %d: %#x is not found, or another with it", seed, num)
			}
		}
	}
}
