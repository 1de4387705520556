package ps_test

import (
	"context"
	"fmt"
	"log"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/ps"
)

// listen opens an address for a server on the transport.
func listen(t archon.Transport) archon.Listener {
	l, err := t.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return l
}

// One shard with two replicas: what is pushed to either is at both before the Push is
// answered.
func ExampleShard_Replicate() {
	ctx := context.Background()
	nodes := []archon.BE{{Node: newNode()}, {Node: newNode()}}
	client := archon.BE{Node: newNode()}
	for _, t := range append(nodes, client) {
		defer t.Node.Close()
	}

	among := []archon.Listener{listen(nodes[0]), listen(nodes[1])} // replicas reach each other here
	var peers []string
	for _, l := range among {
		peers = append(peers, l.Addr().String())
	}
	var shards []*ps.Shard
	var replicas []*ps.Replica
	for i, t := range nodes {
		shard, err := ps.NewShard(ps.Config{Dim: 2, LearningRate: 1})
		if err != nil {
			log.Fatal(err)
		}
		defer shard.Close()
		server := archon.NewServer(archon.ServerConfig{})
		defer server.Close()
		replica, err := shard.Replicate(server, ps.ReplicaConfig{Peers: peers, Self: i, Transport: t})
		if err != nil {
			log.Fatal(err)
		}
		defer replica.Close()
		go server.Serve(ctx, among[i])
		shards, replicas = append(shards, shard), append(replicas, replica)
	}
	var endpoints []channel.Endpoint
	for i, t := range nodes {
		if err := replicas[i].Wait(ctx); err != nil {
			log.Fatal(err)
		}
		server := archon.NewServer(archon.ServerConfig{Workers: 64})
		defer server.Close()
		if err := shards[i].Register(server); err != nil {
			log.Fatal(err)
		}
		l := listen(t)
		go server.Serve(ctx, l)
		endpoints = append(endpoints, channel.Endpoint{RDMA: l.Addr().String()})
	}

	ch, err := channel.New(channel.Config{Service: "ps", Resolver: channel.Static(endpoints...), RDMA: client})
	if err != nil {
		log.Fatal(err)
	}
	c, err := ps.NewChannelClient(2, []*channel.Channel{ch})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := c.Push(ctx, []uint64{7}, []float32{-1, -2}); err != nil {
		log.Fatal(err)
	}
	rows, err := c.Fetch(ctx, []uint64{7})
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Release()
	fmt.Println(rows.Row(0), shards[0].Version(7), shards[1].Version(7))
	// Output: [1 2] 1 1
}
