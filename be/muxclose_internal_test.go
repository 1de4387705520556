package be

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/byteexpress/byteexpress/sim"
)

// TestMuxTakesClosedSocket: a socket is closed while it is brought to a Mux, and a message
// of it that is under way goes to the Mux's queue. Nobody serves that any more when the
// node closes, and the message is given back all the same.
func TestMuxTakesClosedSocket(t *testing.T) {
	ctx := t.Context()
	var nodes [2]*Node
	f := sim.NewFabric(sim.Config{})
	for i := range nodes {
		dev, err := f.NewDevice([]string{"sim0", "sim1"}[i], sim.DeviceConfig{})
		if err != nil {
			t.Fatal(err)
		}
		rdma, err := dev.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer rdma.Close()
		if nodes[i], err = NewNode(rdma, Config{}); err != nil {
			t.Fatal(err)
		}
		defer nodes[i].Close()
	}
	l, err := nodes[0].Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var servers, clients [2]*Socket
	for i := range clients {
		if clients[i], err = nodes[1].Dial(ctx, l.Addr().String(), ""); err != nil {
			t.Fatal(err)
		}
		if servers[i], err = l.Accept(ctx); err != nil {
			t.Fatal(err)
		}
	}
	send := func(s *Socket) {
		b, err := nodes[1].Alloc(8)
		if err == nil {
			err = s.Send(ctx, b)
		}
		if err != nil {
			t.Fatal(err)
		}
		nodes[1].Free(b)
	}
	// The first socket's callback keeps the worker in the middle of a batch of
	// completions, with a message of the second one's behind it.
	entered, leave := make(chan struct{}), make(chan struct{})
	servers[0].OnMessage(func(b []byte, err error) {
		if err == nil {
			entered <- struct{}{}
			<-leave
			nodes[0].Free(b)
		}
	})
	send(clients[0])
	<-entered
	send(clients[0])
	send(clients[1])
	leave <- struct{}{}
	<-entered
	s, m := servers[1], NewMux(1, func(s *Socket, b []byte, err error) { s.Node().Free(b) })
	s.Close()
	if err := m.Add(s); err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { m.Serve(serving) })
	for s.turn.Load() != turnNone {
		runtime.Gosched()
	}
	stop()
	wg.Wait()
	leave <- struct{}{}
	for i := range nodes {
		if err := nodes[i].Close(); err != nil {
			t.Error(err)
		}
	}
}
