package ps_test

import (
	"context"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/ps"
	"github.com/byteexpress/byteexpress/sim"
)

// newNode gives a ByteExpress node on a simulated device of its own. On hardware,
// package provider opens the device.
func newNode() *be.Node {
	dev, err := sim.Open("sim:")
	if err != nil {
		log.Fatal(err)
	}
	rdma, err := dev.Open()
	if err != nil {
		log.Fatal(err)
	}
	node, err := be.NewNode(rdma, be.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return node
}

// Two shards, one step of gradient descent, and the rows it leaves.
func Example() {
	ctx := context.Background()
	serverNode, clientNode := newNode(), newNode()
	defer serverNode.Close()
	defer clientNode.Close()

	var addrs []string
	for i := range 2 {
		shard, err := ps.NewShard(ps.Config{Dim: 4, Shard: i, Shards: 2, LearningRate: 0.5})
		if err != nil {
			log.Fatal(err)
		}
		server := archon.NewServer(archon.ServerConfig{})
		defer server.Close()
		if err := shard.Register(server); err != nil {
			log.Fatal(err)
		}
		listener, err := archon.BE{Node: serverNode}.Listen("127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		go server.Serve(ctx, listener)
		addrs = append(addrs, listener.Addr().String())
	}
	client, err := ps.Dial(ctx, archon.BE{Node: clientNode}, 4, addrs)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	keys := []uint64{7, 1 << 40}
	if err := client.Push(ctx, keys, []float32{1, 2, 3, 4, -1, -2, -3, -4}); err != nil {
		log.Fatal(err)
	}
	rows, err := client.Fetch(ctx, keys)
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Release()
	fmt.Println(rows.Row(0), rows.Row(1))
	// Output: [-0.5 -1 -1.5 -2] [0.5 1 1.5 2]
}

// A shard is saved while it serves, and a new process goes on from the file: with the
// rows, their versions, and what is known of pushes that were applied.
func ExampleShard_SaveFile() {
	dir, err := os.MkdirTemp("", "ps")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "shard0")

	cfg := ps.Config{Dim: 2, LearningRate: 0.5}
	shard, err := ps.NewShard(cfg)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := shard.Load(maps.All(map[uint64][]float32{7: {1, 2}, 8: {3, 4}})); err != nil {
		log.Fatal(err)
	}
	if err := shard.SaveFile(file); err != nil {
		log.Fatal(err)
	}
	if err := shard.Close(); err != nil {
		log.Fatal(err)
	}

	again, err := ps.NewShard(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	if err := again.RestoreFile(file); err != nil {
		log.Fatal(err)
	}
	fmt.Println(again.Rows(), "rows")

	// Of another table it takes nothing.
	other, err := ps.NewShard(ps.Config{Dim: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer other.Close()
	fmt.Println(other.RestoreFile(file) != nil, other.Rows())
	// Output:
	// 2 rows
	// true 0
}
