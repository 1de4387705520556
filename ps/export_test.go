package ps

import (
	"context"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
)

// Channels gives the channels of a client by a map, by shard.
func (c *Client) Channels() (list []*channel.Channel) {
	c.follower.mu.Lock()
	defer c.follower.mu.Unlock()
	for _, w := range c.follower.ways {
		list = append(list, w.ch)
	}
	return list
}

// Phases are those of a change of the map, that of giving it up not included.
const Phases = int(phaseAbort)

// RebalanceWatched is Rebalance, which tells of each phase before its first round.
func RebalanceWatched(ctx context.Context, from, to *Map, watch func(phase int)) error {
	cfg := RebalanceConfig{Transport: archon.TCP{}, Timeout: 250 * time.Millisecond, Freeze: time.Second}
	c, err := newCoordinator(from, to, uint32(time.Now().UnixNano()), cfg.Freeze)
	if err != nil {
		return err
	}
	d := &rebalancer{c: c, cfg: cfg, lines: make([]line, len(c.members))}
	defer d.close()
	for last := phaseDone; c.phase != phaseDone; {
		if c.phase != last {
			last = c.phase
			watch(int(last))
		}
		d.round(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		pause, err := c.judge()
		if err != nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}
