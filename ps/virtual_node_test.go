package ps_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testfault"
	"github.com/byteexpress/byteexpress/internal/testnet"
	"github.com/byteexpress/byteexpress/ps"
	"github.com/byteexpress/byteexpress/sim"
)

// virtualNode is a replica in a world in virtual time: a host with a NIC, and the
// process on it, which may die and begin anew with nothing.
type virtualNode struct {
	w                 *virtualWorld
	shard, replica    int
	name              string
	host              testnet.Host
	peers             []string
	device            *sim.Device
	fault             *testfault.Device
	table             *ps.Shard
	group             *ps.Replica
	serving           chan struct{} // closed when clients can come
	life              int
	end               func() // of this life
	insideAt, tcp, be string // addresses
}

// newVirtualDevice puts a NIC on the fabric, and gives what the process has of it.
func (w *virtualWorld) newDevice(name string, host testnet.Host) (*sim.Device, *testfault.Device, *channel.Device) {
	dev, err := w.fabric.NewDevice("sim:"+name, sim.DeviceConfig{})
	if err != nil {
		w.t.Fatal(err)
	}
	fault := testfault.New(dev.Open)
	return dev, fault, channel.NewDevice(fault.Open, be.Config{Bootstrap: host, AckTimeout: 10, RetryCount: 2, StepTimeout: time.Second, Linger: 100 * time.Millisecond, Seed: w.seed})
}

// boot starts the process.
func (n *virtualNode) boot() {
	w := n.w
	n.life++
	var rdma *channel.Device
	n.device, n.fault, rdma = w.newDevice(fmt.Sprint(n.name, ".", n.life), n.host)
	s, err := ps.NewShard(ps.Config{Dim: virtualDim, Shard: n.shard, Shards: virtualShards, LearningRate: 1, Map: w.first})
	if err != nil {
		w.t.Fatal(err)
	}
	inside, outside := archon.NewServer(archon.ServerConfig{}), archon.NewServer(archon.ServerConfig{Workers: 64, Interceptors: []archon.Interceptor{w.work}})
	tcp := archon.TCP{Network: n.host}
	r, err := s.Replicate(inside, ps.ReplicaConfig{Peers: n.peers, Self: n.replica, Transport: tcp, Moves: tcp, Lease: virtualLease})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := s.Register(outside); err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	listen := func(srv *archon.Server, tr archon.Transport, addr string) {
		if l, err := tr.Listen(addr); err == nil { // else the process has died already
			all.Go(func() {
				srv.Serve(ctx, l)
				l.Close()
			})
		}
	}
	listen(inside, tcp, n.insideAt)
	serving := make(chan struct{})
	all.Go(func() {
		if r.Wait(ctx) == nil {
			listen(outside, tcp, n.tcp)
			listen(outside, rdma, n.be)
			close(serving)
		}
	})
	n.table, n.group, n.serving = s, r, serving
	device, fault := n.device, n.fault
	n.end = func() {
		fault.Freeze(false)
		stop()
		r.Close()
		outside.Close()
		inside.Close()
		all.Wait()
		s.Close()
		for rdma.Close() != nil {
			time.Sleep(time.Millisecond)
		}
		device.Remove()
	}
}

// kill ends the process without a word: nothing of what it still does gets out.
func (n *virtualNode) kill() {
	n.w.fabric.Partition(n.w.device, n.device, true)
	n.host.Kill()
	n.w.ends.Go(n.end)
}

// freeze stops the process, or lets it go on.
func (n *virtualNode) freeze(freeze bool) {
	n.host.Freeze(freeze)
	n.fault.Freeze(freeze)
}

// cut has the network between clients and the host lose everything, or no longer.
func (n *virtualNode) cut(lose bool) {
	n.w.net.Lose("client", n.name, lose)
	n.w.fabric.Partition(n.w.device, n.device, lose)
}
