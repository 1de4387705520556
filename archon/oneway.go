package archon

import (
	"context"
	"errors"
	"time"
)

// sendOneWay sends a call that has no response; b is gone whatever happens.
func (c *Client) sendOneWay(ctx context.Context, m Method, b Buf) error {
	h := header{kind: kindRequest, flags: flagOneWay, payload: uint32(len(b.raw) - b.at()), meta: b.meta, method: m.id}
	err := c.postOneWay(ctx, &h, b)
	if err != nil {
		c.sock.Free(b.raw)
	}
	return err
}

func (c *Client) postOneWay(ctx context.Context, h *header, b Buf) error {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		var err error
		if h.timeout, err = timeLeft(ctx); err != nil {
			return err
		}
		if err := c.refusal(); err != nil {
			return err
		}
		h.put(b.raw)
		err = c.post(b.raw, nil, 0)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrQueueFull) {
			return postError(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// refusal is why there are no new calls; nil while there are.
func (c *Client) refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	return c.away
}
