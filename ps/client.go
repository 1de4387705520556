package ps

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/pkg/errors"
)

// Client fetches and pushes rows of a table whose shards it is connected to. All
// methods may be called from any goroutine.
type Client struct {
	dim      int
	id       ClientID
	layout   atomic.Pointer[layout]
	follower *follower // nil: there is no map
	fetches  sync.Pool // *FetchCall of Fetch
	pushes   sync.Pool // *PushCall of Push
}

// NewClient makes a client of the table with rows of dim values. shards[i] is
// connected to shard i; they are the client's from here on. Its requests are sent once.
func NewClient(dim int, shards []*archon.Client) (*Client, error) {
	ways := make([]*way, len(shards))
	for i, conn := range shards {
		ways[i] = &way{conn: conn, number: new(atomic.Uint64)}
	}
	return newClient(dim, ways)
}

// NewChannelClient makes a client of a table whose shards are replicated: shards[i] is
// the channel to the replicas of shard i; they are the client's from here on. The
// channels repeat Fetch and Push as they repeat idempotent calls: a Push has an id, by
// which a shard applies it once. Pushes go to one replica, as long as that can be
// reached; a Fetch goes to any.
func NewChannelClient(dim int, shards []*channel.Channel) (*Client, error) {
	ways := make([]*way, len(shards))
	for i, ch := range shards {
		ways[i] = &way{ch: ch, number: new(atomic.Uint64)}
	}
	return newClient(dim, ways)
}

// NewMapClient makes a client of a table that is sharded by a map: cfg sets up the
// channel to each shard, but for its replicas, which are the map's. The client follows
// the map: when a shard refuses a part of a request because it has a newer one, or has
// no replica left where the map says, the client gets it, and sends what was not answered
// to where it belongs now, with the time that is left of the request's deadline. When the
// shard has an older map, the client asks it again until it has the newer one too. See
// Update for maps from elsewhere.
//
// Shards are trusted: a client that was given a map of a version that the others never
// reach has its requests wait in vain, and is to be closed. A request follows 64 maps at
// most, and one without a deadline waits 10 s for client and shard to get the same one.
func NewMapClient(dim int, m *Map, cfg channel.Config) (*Client, error) {
	c, err := makeClient(dim)
	if err != nil {
		return nil, err
	}
	fo := &follower{client: c, cfg: cfg}
	fo.life, fo.end = context.WithCancel(context.Background())
	c.follower = fo
	if err := fo.install(m); err != nil {
		_ = fo.close()
		return nil, err
	}
	fo.spawn(fo.watch)
	return c, nil
}

// Update gives a client of NewMapClient a map, of which it knows the old by the version:
// only a newer one than its own is taken.
func (c *Client) Update(m *Map) error {
	if c.follower == nil {
		return errors.New("ps: the client has no map: make it with NewMapClient")
	}
	return c.follower.install(m)
}

// Map is the map that the client has now, not to be changed; nil: it has none.
func (c *Client) Map() *Map { return c.layout.Load().m }

func newClient(dim int, shards []*way) (*Client, error) {
	if len(shards) == 0 || int64(len(shards)) > math.MaxInt32 {
		return nil, errors.Errorf("ps: %d shards, at least 1 is needed", len(shards))
	}
	c, err := makeClient(dim)
	if err == nil {
		c.layout.Store(&layout{ways: shards})
	}
	return c, err
}

func makeClient(dim int) (*Client, error) {
	if dim < 1 || dim > maxDim {
		return nil, errors.Errorf("ps: rows of %d values, must be 1 to %d", dim, maxDim)
	}
	c := &Client{dim: dim, id: NewClientID()}
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

// Shards is the number of shards now.
func (c *Client) Shards() int { return len(c.layout.Load().ways) }

// Close ends the connections; outstanding calls end with Unavailable. It must not be
// called from a done function.
func (c *Client) Close() error {
	if c.follower != nil {
		return c.follower.close()
	}
	var first error
	for _, w := range c.layout.Load().ways {
		if err := w.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
