package ps

import (
	"context"
	"math"
	"sync"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/pkg/errors"
)

// Client fetches and pushes rows of a table whose shards it is connected to. All
// methods may be called from any goroutine.
type Client struct {
	dim     int
	shardOf *Map // nil: as ShardOf has it
	id      ClientID
	shards  []way
	fetches sync.Pool // *FetchCall of Fetch
	pushes  sync.Pool // *PushCall of Push
}

// NewClient makes a client of the table with rows of dim values. shards[i] is
// connected to shard i; they are the client's from here on. Its requests are sent once.
func NewClient(dim int, shards []*archon.Client) (*Client, error) {
	ways := make([]way, len(shards))
	for i := range ways {
		ways[i].conn = shards[i]
	}
	return newClient(dim, ways)
}

// NewChannelClient makes a client of a table whose shards are replicated: shards[i] is
// the channel to the replicas of shard i; they are the client's from here on. The
// channels repeat Fetch and Push as they repeat idempotent calls: a Push has an id, by
// which a shard applies it once. Pushes go to one replica, as long as that can be
// reached; a Fetch goes to any.
func NewChannelClient(dim int, shards []*channel.Channel) (*Client, error) {
	ways := make([]way, len(shards))
	for i := range ways {
		ways[i].ch = shards[i]
	}
	return newClient(dim, ways)
}

// NewMapClient makes a client of a table that is sharded by a map: cfg sets up the
// channel to each shard, but for its replicas, which are the map's. A shard that has
// another map refuses its part of a request with a *WrongMapError.
func NewMapClient(dim int, m *Map, cfg channel.Config) (*Client, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	ways := make([]way, len(m.Replicas))
	fail := func(err error) (*Client, error) {
		for i := range ways {
			if ways[i].ch != nil {
				ways[i].ch.Close()
			}
		}
		return nil, err
	}
	for i, list := range m.Replicas {
		cfg.Resolver = channel.Static(list...)
		var err error
		if ways[i].ch, err = channel.New(cfg); err != nil {
			return fail(errors.WithMessagef(err, "ps: shard %d", i))
		}
	}
	c, err := newClient(dim, ways)
	if err != nil {
		return fail(err)
	}
	c.shardOf = m
	return c, nil
}

// owner gives the shard of a key.
func (c *Client) owner(key uint64) int {
	if c.shardOf != nil {
		return c.shardOf.Owner(key)
	}
	return ShardOf(key, len(c.shards))
}

func newClient(dim int, shards []way) (*Client, error) {
	if dim < 1 || dim > maxDim {
		return nil, errors.Errorf("ps: rows of %d values, must be 1 to %d", dim, maxDim)
	}
	if len(shards) == 0 || int64(len(shards)) > math.MaxInt32 {
		return nil, errors.Errorf("ps: %d shards, at least 1 is needed", len(shards))
	}
	c := &Client{dim: dim, id: NewClientID(), shards: shards}
	c.fetches.New = func() any { return &FetchCall{wake: make(chan struct{}, 1)} }
	c.pushes.New = func() any { return &PushCall{wake: make(chan struct{}, 1)} }
	return c, nil
}

// Dial connects to the shards at addrs, in their order.
func Dial(ctx context.Context, t archon.Transport, dim int, addrs []string) (*Client, error) {
	shards := make([]*archon.Client, 0, len(addrs))
	fail := func(err error) (*Client, error) {
		for _, s := range shards {
			s.Close()
		}
		return nil, err
	}
	for i, addr := range addrs {
		s, err := archon.Dial(ctx, t, addr, "ps", archon.ClientConfig{})
		if err != nil {
			return fail(errors.WithMessagef(err, "ps: shard %d", i))
		}
		shards = append(shards, s)
	}
	c, err := NewClient(dim, shards)
	if err != nil {
		return fail(err)
	}
	return c, nil
}

// ID is the client's name in the ids of its pushes.
func (c *Client) ID() ClientID { return c.id }

// Dim is the number of values of a row.
func (c *Client) Dim() int { return c.dim }

// Shards is the number of shards.
func (c *Client) Shards() int { return len(c.shards) }

// Close ends the connections; outstanding calls end with Unavailable. It must not be
// called from a done function.
func (c *Client) Close() error {
	var first error
	for i := range c.shards {
		if err := c.shards[i].close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
