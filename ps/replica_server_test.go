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
	"github.com/byteexpress/byteexpress/ps"
)

// replicaEnv makes the test binary a replica: shard, shards, its number, the address for
// clients, and those of the replicas.
const replicaEnv = "PS_TEST_REPLICA"

const (
	replicaLease = 400 * time.Millisecond
	replicaDim   = 4
)

// serveReplica is the replica. It ends when its standard input does, so that it does not
// outlive the test.
func serveReplica() {
	words := strings.Fields(os.Getenv(replicaEnv))
	number := func(i int) int {
		n, err := strconv.Atoi(words[i])
		if err != nil {
			log.Fatal(err)
		}
		return n
	}
	self, peers := number(2), words[4:]
	s, err := ps.NewShard(ps.Config{Dim: replicaDim, Shard: number(0), Shards: number(1), LearningRate: 1})
	if err != nil {
		log.Fatal(err)
	}
	inside, outside := archon.NewServer(archon.ServerConfig{}), archon.NewServer(archon.ServerConfig{Workers: 64})
	r, err := s.Replicate(inside, ps.ReplicaConfig{Peers: peers, Self: self, Lease: replicaLease})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Register(outside); err != nil {
		log.Fatal(err)
	}
	listen := func(srv *archon.Server, addr string) {
		l, err := archon.TCP{}.Listen(addr)
		if err != nil {
			log.Fatal(err)
		}
		go srv.Serve(context.Background(), l)
	}
	listen(inside, peers[self])
	if err := r.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	listen(outside, words[3])
	fmt.Println("serves")
	io.Copy(io.Discard, os.Stdin)
}
