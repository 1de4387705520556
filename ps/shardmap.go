package ps

import (
	"math/bits"
	"sort"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/pkg/errors"
)

// Map says which shard owns a key and which replicas serve a shard. It is not changed
// after use: another map has another version.
type Map struct {
	Version uint32 // from 1; a later map of the same table has a higher one
	By      Sharding
	// Bounds are where the shards' ranges begin, in ascending order; the first is at 0,
	// and a range goes to the next bound. A shard may own several, or none.
	Bounds []Bound
	// Replicas are by shard: of 4,096 shards at most, and 8,192 in all. Clients connect to
	// each of them.
	Replicas [][]channel.Endpoint
}

// Bound is the first position of a range, and the shard that owns it.
type Bound struct {
	First uint64
	Shard int
}

// Sharding is what the position of a key is.
type Sharding uint8

const (
	ByHash  Sharding = iota // Hash(key): neighbours are spread over all shards
	ByRange                 // the key itself: neighbours are together
)

// A client connects to every replica of a map, which another host may have sent it.
const (
	maxMapShards   = 1 << 12
	maxMapReplicas = 1 << 13 // of all shards
	maxBounds      = 1 << 20
)

// NewMap makes the first map of a table: as many ranges of equal length as there are
// shards. By hash, keys are where ShardOf has them.
func NewMap(by Sharding, replicas ...[]channel.Endpoint) *Map {
	m := &Map{Version: 1, By: by, Replicas: replicas}
	n := uint64(len(replicas))
	for i := range n {
		first, rest := bits.Div64(i, 0, n)
		if rest > 0 {
			first++
		}
		m.Bounds = append(m.Bounds, Bound{first, int(i)})
	}
	return m
}

// Owner gives the shard that owns a key. The map is valid.
func (m *Map) Owner(key uint64) int { return m.owner(key, Hash(key)) }

func (m *Map) owner(key, hash uint64) int {
	at := hash
	if m.By == ByRange {
		at = key
	}
	after := sort.Search(len(m.Bounds), func(i int) bool { return m.Bounds[i].First > at })
	return m.Bounds[after-1].Shard
}

// Validate says what is wrong with a map, if anything.
func (m *Map) Validate() error {
	switch {
	case m.Version == 0:
		return errors.New("ps: a map has version 0, they count from 1")
	case m.By > ByRange:
		return errors.Errorf("ps: sharding %d, there are ByHash and ByRange", m.By)
	case len(m.Replicas) < 1 || len(m.Replicas) > maxMapShards:
		return errors.Errorf("ps: a map of %d shards, must be 1 to %d", len(m.Replicas), maxMapShards)
	case len(m.Bounds) > maxBounds:
		return errors.Errorf("ps: a map of %d bounds, at most %d", len(m.Bounds), maxBounds)
	case len(m.Bounds) == 0 || m.Bounds[0].First != 0:
		return errors.New("ps: a map's first bound must be at 0: every key needs an owner")
	}
	replicas := 0
	for i, list := range m.Replicas {
		if err := channel.CheckEndpoints(list); err != nil {
			return errors.WithMessagef(err, "ps: shard %d of a map", i)
		}
		replicas += len(list)
	}
	if replicas > maxMapReplicas {
		return errors.Errorf("ps: a map of %d replicas, at most %d of all shards", replicas, maxMapReplicas)
	}
	for i, b := range m.Bounds {
		if b.Shard < 0 || b.Shard >= len(m.Replicas) {
			return errors.Errorf("ps: the range from %#x is of shard %d, there are %d", b.First, b.Shard, len(m.Replicas))
		}
		if i > 0 && b.First <= m.Bounds[i-1].First {
			return errors.Errorf("ps: bound %#x after %#x: they ascend", b.First, m.Bounds[i-1].First)
		}
	}
	return nil
}
