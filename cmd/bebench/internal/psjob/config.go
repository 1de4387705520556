package psjob

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/ps"
)

// Workload is what the workers do.
type Workload string

// The workloads: many fetches outstanding, or steps of a fetch and a push.
const (
	Inference Workload = "inference"
	Training  Workload = "training"
)

// Operations of the job, as rows of results name them.
const (
	OpFetch = "fetch"
	OpPush  = "push"
)

// Config says what the job is. Start from Defaults.
type Config struct {
	Workload    Workload
	Shards      int
	Replicas    int // of each shard, by a map; 0: there is no map, and each shard is at one server
	ThenShards  int // that the map is changed to; 0: it does not change
	Workers     int // each with connections of its own
	Outstanding int // requests of each worker
	Dim         int // float32 values of a row
	Rows        int // distinct keys, unless Keys is set
	MinBytes    int // of rows in a request; sizes in between are log-uniform
	MaxBytes    int
	SliceBytes  int // of rows in a slice, all workers together
	Seed        uint64
	Verify      bool
	Keys        []uint64 // the key stream; nil: Rows keys, skewed
}

// Defaults are those of the paper's workloads where it gives them: kilobytes to
// megabytes a response for inference, a mean of 20 KB and at most 50 KB for
// training.
func Defaults(w Workload) Config {
	c := Config{
		Workload: w, Shards: 4, Workers: 2, Outstanding: 16, Dim: 256, Rows: 16384,
		MinBytes: 1 << 10, MaxBytes: 1 << 20, SliceBytes: 32 << 20, Seed: 1, Verify: true,
	}
	if w == Training {
		c.MinBytes, c.MaxBytes = 8<<10, 48<<10
	}
	return c
}

// maxRows bounds the distinct keys of the synthetic stream.
const maxRows = 1 << 26

// Check refuses what cannot be run; names are those of the flags.
func (c *Config) Check() error {
	if c.Workload != Inference && c.Workload != Training {
		return errors.Errorf("--workload %q: want %s or %s", c.Workload, Inference, Training)
	}
	for _, l := range []struct {
		flag        string
		n, low, top int
	}{
		{"shards", c.Shards, 1, 1024},
		{"replicas", c.Replicas, 0, 8},
		{"rebalance-shards", c.ThenShards, 0, 1024},
		{"workers", c.Workers, 1, 1024},
		{"outstanding", c.Outstanding, 1, 4096},
		{"dim", c.Dim, 1, 1 << 16},
		{"rows", c.Rows, 1, maxRows},
		{"min-size", c.MinBytes, 1, math.MaxInt32},
		{"max-size", c.MaxBytes, c.MinBytes, MaxRequestBytes},
	} {
		if l.n < l.low || l.n > l.top {
			return errors.Errorf("--%s %d: must be %d to %d", l.flag, l.n, l.low, l.top)
		}
	}
	return nil
}

// MaxRequestBytes bounds the rows of a request: it is below the messages that archon takes by default.
const MaxRequestBytes = 32 << 20

// Agreed lists, by flag, what a client and its servers must have in common.
func (c *Config) Agreed() map[string]string {
	return map[string]string{
		"workload": string(c.Workload), "shards": fmt.Sprint(c.Shards), "replicas": fmt.Sprint(c.Replicas), "dim": fmt.Sprint(c.Dim), "rows": fmt.Sprint(c.Rows),
		"seed": fmt.Sprint(c.Seed),
	}
}

// rowBytes is the length of a row.
func (c *Config) rowBytes() int { return 4 * c.Dim }

// shard configures one shard of the table.
func (c *Config) shard(i int) ps.Config {
	s := ps.Config{Dim: c.Dim, Shard: i, Shards: c.Shards, Seed: c.Seed, InitialScale: 1}
	if c.Workload == Training {
		s.InitialScale, s.LearningRate = 0, 1
	}
	return s
}

// request is one request's keys: so many of the key stream from a place on.
type request struct{ from, n int }

// requests makes a worker's list for a slice. It follows from the arguments alone,
// so that every transport is given the same.
func (c *Config) requests(stream, slice, worker int) []request {
	rng := rand.New(rand.NewPCG(c.Seed, uint64(slice)<<32|uint64(worker)))
	ratio := math.Log(float64(c.MaxBytes) / float64(c.MinBytes))
	var list []request
	for left := c.SliceBytes / c.Workers; left > 0; {
		size := float64(c.MinBytes) * math.Exp(rng.Float64()*ratio)
		n := min(max(int(size+0.5)/c.rowBytes(), 1), stream)
		list = append(list, request{rng.IntN(stream - n + 1), n})
		left -= n * c.rowBytes()
	}
	return list
}
