package ps_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/ps"
	"github.com/byteexpress/byteexpress/verbs"
)

// replicaEnv makes the test binary a replica: lease, shard, shards, its number, the device,
// "-" for none, the addresses for clients over TCP and over RDMA, and those of the replicas;
// below that the text of the map, if there is one.
const replicaEnv = "PS_TEST_REPLICA"

const replicaDim = 4

// serveReplica is the replica. It ends when its standard input does, so that it does not
// outlive the test.
func serveReplica() {
	line, text, _ := strings.Cut(os.Getenv(replicaEnv), "\n")
	words := strings.Fields(line)
	number := func(i int) int {
		n, err := strconv.Atoi(words[i])
		if err != nil {
			log.Fatal(err)
		}
		return n
	}
	self, peers := number(3), words[7:]
	lease, err := time.ParseDuration(words[0])
	if err != nil {
		log.Fatal(err)
	}
	cfg := ps.Config{Dim: replicaDim, Shard: number(1), Shards: number(2), LearningRate: 1}
	if text != "" {
		cfg.Shards, cfg.Map = 0, new(ps.Map)
		if err := cfg.Map.UnmarshalText([]byte(text)); err != nil {
			log.Fatal(err)
		}
	}
	s, err := ps.NewShard(cfg)
	if err != nil {
		log.Fatal(err)
	}
	inside, outside := archon.NewServer(archon.ServerConfig{}), archon.NewServer(archon.ServerConfig{Workers: 64})
	r, err := s.Replicate(inside, ps.ReplicaConfig{Peers: peers, Self: self, Lease: lease})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Register(outside); err != nil {
		log.Fatal(err)
	}
	listen := func(on archon.Transport, srv *archon.Server, addr string) {
		l, err := on.Listen(addr)
		if err != nil {
			log.Fatal(err)
		}
		go srv.Serve(context.Background(), l)
	}
	listen(archon.TCP{}, inside, peers[self])
	if err := r.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	listen(archon.TCP{}, outside, words[5])
	if name := words[4]; name != "-" {
		listen(deviceNamed(name), outside, words[6])
	}
	fmt.Println("serves")
	io.Copy(io.Discard, os.Stdin)
}

// deviceNamed is a transport on a device of this host.
func deviceNamed(name string) *channel.Device {
	return channel.NewDevice(func() (verbs.Context, error) {
		dev, err := provider.Open(name)
		if err != nil {
			return nil, err
		}
		return dev.Open()
	}, be.Config{})
}
