package ps

import (
	"math"

	"github.com/pkg/errors"
)

// Config sets a Shard up. Dim must be set; the rest works as zero. All shards of one
// table, and its clients, agree on Dim and Shards.
type Config struct {
	Dim          int     // values a row, 1 to 65536
	Shard        int     // which shard this is, from 0; one that Map does not have owns nothing yet
	Shards       int     // shards in all; 0: 1, or those of Map
	LearningRate float32 // of Push; 0: gradients have no effect
	Optimizer    Optimizer
	Epsilon      float32 // of Adagrad; 0: 1e-8
	Seed         uint64  // of the initial values
	InitialScale float32 // initial values lie in [-InitialScale, InitialScale); 0: all are 0
	MaxRows      int     // rows that may take memory; 0: 2^32 - 2
	MaxKeys      int     // keys a request; 0: 2^20
	MaxClients   int     // clients whose pushes are remembered, about 200 bytes each, at most 17 KB; 0: 65536

	// Map says which keys are this shard's when it begins; see Rebalance for how that
	// changes. Clients of an older map are refused. nil: those of NewMap by hash, and
	// clients have no map.
	Map *Map

	// Memory is where the rows lie. Long rows are then sent from the table itself if
	// the transport can send from that memory, as ByteExpress can from its node's. nil:
	// the Go heap.
	Memory Memory
}

// Optimizer is how a Push changes a row. In all of them each operation is rounded to
// float32 on its own, so that every machine computes the same bits.
type Optimizer uint8

const (
	// SGD is stochastic gradient descent: row -= LearningRate * gradient.
	SGD Optimizer = iota
	// Adagrad (Duchi, Hazan, Singer: Adaptive subgradient methods for online learning
	// and stochastic optimization, JMLR 12, 2011, the diagonal form) keeps the sum of
	// the squares of what a value got, in as much memory again as the rows take:
	//
	//	sum += gradient * gradient
	//	row -= LearningRate * gradient / (sqrt(sum) + Epsilon)
	Adagrad
)

// Memory gives memory for rows. A *be.Node is one.
type Memory interface {
	// Alloc gives size bytes, at least 4-byte aligned, with any contents.
	Alloc(size int) ([]byte, error)
	// Free gives a buffer of Alloc back.
	Free(b []byte)
}

const (
	maxDim         = 1 << 16
	maxRows        = 1<<32 - 2
	defaultMaxKeys = 1 << 20

	defaultMaxClients = 1 << 16
)

func (cfg Config) withDefaults() (Config, error) {
	if m := cfg.Map; m != nil {
		if err := m.Validate(); err != nil {
			return cfg, err
		}
		if cfg.Shards != 0 && cfg.Shards != len(m.Replicas) {
			return cfg, errors.Errorf("ps: %d shards, the map has %d", cfg.Shards, len(m.Replicas))
		}
		cfg.Shards = max(len(m.Replicas), min(cfg.Shard, maxMapShards-1)+1)
	}
	if cfg.Shards == 0 {
		cfg.Shards = 1
	}
	if cfg.MaxRows == 0 {
		cfg.MaxRows = min(maxRows, math.MaxInt)
	}
	if cfg.MaxKeys == 0 {
		cfg.MaxKeys = defaultMaxKeys
	}
	if cfg.MaxClients == 0 {
		cfg.MaxClients = defaultMaxClients
	}
	if cfg.Epsilon == 0 {
		cfg.Epsilon = 1e-8
	}
	rate, scale := float64(cfg.LearningRate), float64(cfg.InitialScale)
	switch {
	case cfg.Dim < 1 || cfg.Dim > maxDim:
		return cfg, errors.Errorf("ps: rows of %d values, must be 1 to %d", cfg.Dim, maxDim)
	case cfg.Shards < 1 || int64(cfg.Shards) > math.MaxInt32 || cfg.Shard < 0 || cfg.Shard >= cfg.Shards:
		return cfg, errors.Errorf("ps: shard %d of %d: shards count from 0", cfg.Shard, cfg.Shards)
	case cfg.MaxRows < 0 || int64(cfg.MaxRows) > maxRows:
		return cfg, errors.Errorf("ps: at most %d rows, must be 0 to %d", cfg.MaxRows, int64(maxRows))
	case cfg.MaxKeys < 0 || int64(cfg.MaxKeys) > math.MaxUint32:
		return cfg, errors.Errorf("ps: at most %d keys a request, must be 0 to %d", cfg.MaxKeys, int64(math.MaxUint32))
	case cfg.Optimizer > Adagrad:
		return cfg, errors.Errorf("ps: optimizer %d, there are SGD and Adagrad", cfg.Optimizer)
	case !(cfg.Epsilon > 0) || math.IsInf(float64(cfg.Epsilon), 0):
		return cfg, errors.Errorf("ps: epsilon %v must be positive and finite", cfg.Epsilon)
	case cfg.MaxClients < 0:
		return cfg, errors.Errorf("ps: memory of %d clients, at least 1 is needed", cfg.MaxClients)
	case math.IsNaN(rate) || math.IsInf(rate, 0) || math.IsNaN(scale) || math.IsInf(scale, 0):
		return cfg, errors.Errorf("ps: learning rate %v and initial scale %v must be finite", rate, scale)
	}
	return cfg, nil
}
