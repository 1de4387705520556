package ps

import "github.com/byteexpress/byteexpress/archon/channel"

// Channels gives the channels of a client by a map, by shard.
func (c *Client) Channels() (list []*channel.Channel) {
	c.follower.mu.Lock()
	defer c.follower.mu.Unlock()
	for _, w := range c.follower.ways {
		list = append(list, w.ch)
	}
	return list
}
