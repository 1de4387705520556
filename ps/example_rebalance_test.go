package ps_test

import (
	"context"
	"fmt"
	"log"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/ps"
)

// A table of one shard becomes one of two while it serves. Clients use RDMA; a change of the
// map needs the TCP addresses.
func ExampleRebalance() {
	ctx := context.Background()
	type host struct {
		archon.BE
		among, rdma, tcp archon.Listener
	}
	var hosts []host
	var replicas [][]channel.Endpoint // by shard
	for range 2 {
		t := archon.BE{Node: newNode()}
		defer t.Node.Close()
		h := host{t, listen(t), listen(t), listen(archon.TCP{})}
		hosts = append(hosts, h)
		replicas = append(replicas, []channel.Endpoint{{RDMA: h.rdma.Addr().String(), TCP: h.tcp.Addr().String()}})
	}
	from, to := ps.NewMap(ps.ByHash, replicas[0]), ps.NewMap(ps.ByHash, replicas...)
	to.Version = from.Version + 1

	var shards []*ps.Shard
	for i, h := range hosts { // shard 1, which from does not have, begins with it too
		shard, err := ps.NewShard(ps.Config{Dim: 1, LearningRate: 1, Shard: i, Map: from})
		if err != nil {
			log.Fatal(err)
		}
		defer shard.Close()
		inside, outside := archon.NewServer(archon.ServerConfig{}), archon.NewServer(archon.ServerConfig{Workers: 64})
		defer inside.Close()
		defer outside.Close()
		replica, err := shard.Replicate(inside, ps.ReplicaConfig{Peers: []string{h.among.Addr().String()}, Transport: h.BE})
		if err != nil {
			log.Fatal(err)
		}
		defer replica.Close()
		go inside.Serve(ctx, h.among)
		if err := replica.Wait(ctx); err != nil {
			log.Fatal(err)
		}
		if err := shard.Register(outside); err != nil {
			log.Fatal(err)
		}
		go outside.Serve(ctx, h.rdma)
		go outside.Serve(ctx, h.tcp)
		shards = append(shards, shard)
	}

	client := archon.BE{Node: newNode()}
	defer client.Node.Close()
	c, err := ps.NewMapClient(1, from, channel.Config{Service: "ps", RDMA: client})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	keys, gradients := make([]uint64, 1000), make([]float32, 1000)
	for i := range keys {
		keys[i], gradients[i] = uint64(i), -float32(i)
	}
	if err := c.Push(ctx, keys, gradients); err != nil {
		log.Fatal(err)
	}
	if err := ps.Rebalance(ctx, from, to, ps.RebalanceConfig{}); err != nil {
		log.Fatal(err)
	}
	rows, err := c.Fetch(ctx, keys)
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Release()
	fmt.Println(rows.Row(999), c.Map().Version, shards[1].Rows())
	// Output: [999] 2 500
}
