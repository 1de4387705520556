package ps_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/ps"
)

// seededRand gives a source whose seed is printed, and taken from PS_SEED if set.
func seededRand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("PS_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 0, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("PS_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// model is what the server must hold: a plain map.
type model struct {
	cfg  ps.Config
	rows map[uint64][]float32
}

func (m *model) row(key uint64) []float32 {
	if r, ok := m.rows[key]; ok {
		return r
	}
	r := make([]float32, m.cfg.Dim)
	for i := range r {
		r[i] = ps.InitialValue(m.cfg.Seed, key, i, m.cfg.InitialScale)
	}
	return r
}

func (m *model) push(keys []uint64, gradients []float32) {
	for i, key := range keys {
		r := m.row(key)
		for j := range r {
			product := m.cfg.LearningRate * gradients[i*m.cfg.Dim+j]
			r[j] -= float32(product)
		}
		m.rows[key] = r
	}
}

func sameBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

func TestServerAgreesWithModel(t *testing.T) {
	eachTransport(t, func(t *testing.T, tr transport) {
		for _, shards := range []int{1, 3} {
			for _, dim := range []int{1, 7, 64, 200} {
				cfg := ps.Config{Dim: dim, LearningRate: 0.1, Seed: 42, InitialScale: 0.05}
				rng := seededRand(t)
				_, c := tr.start(t, shards, cfg)
				checkAgainstModel(t, c, cfg, rng)
			}
		}
	})
}

// checkAgainstModel runs random requests and compares every row fetched.
func checkAgainstModel(t *testing.T, c *ps.Client, cfg ps.Config, rng *rand.Rand) {
	t.Helper()
	m := &model{cfg: cfg, rows: map[uint64][]float32{}}
	ctx := context.Background()
	for range 300 {
		keys := make([]uint64, rng.IntN(200))
		for i := range keys {
			keys[i] = uint64(rng.IntN(500)) // with duplicates
		}
		if rng.IntN(2) == 0 {
			gradients := make([]float32, len(keys)*cfg.Dim)
			for i := range gradients {
				gradients[i] = float32(rng.NormFloat64())
			}
			if err := c.Push(ctx, keys, gradients); err != nil {
				t.Fatal(err)
			}
			m.push(keys, gradients)
			continue
		}
		f, err := c.Fetch(ctx, keys)
		if err != nil {
			t.Fatal(err)
		}
		for i, key := range keys {
			if got, want := f.Row(i), m.row(key); !sameBits(got, want) {
				t.Fatalf("dim %d key %d: got %v, want %v", cfg.Dim, key, got, want)
			}
		}
		f.Release()
	}
}
