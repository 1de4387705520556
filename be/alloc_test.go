package be_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/byteexpress/byteexpress/be"
)

// TestSteadyStateAllocatesNothing: sending and receiving, eager and large, by
// Send and Recv and by Post and callback.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	if checked() {
		t.Skip("the race detector and BEMALLOC_DEBUG allocate")
	}
	p := newPair(t, be.Config{})
	server, client := p.connect(t, "allocs")
	ctx := context.Background()
	canceled, cancel := context.WithCancel(ctx)
	defer cancel()
	posted := make(chan error, 1)
	done := func(err error) { posted <- err }
	var parts [3][]byte
	for _, size := range []int{0, 64, 8192, 100000, 1 << 20} {
		b := alloc(t, p.nodes[1], size, 1)
		offer := func(on bool) {
			if err := client.SetGet(on); err != nil {
				t.Fatal(err)
			}
		}
		for name, send := range map[string]func() error{
			"Send offered":     func() error { return client.Send(ctx, b) },
			"Send":             func() error { return client.Send(ctx, b) },
			"Send with cancel": func() error { return client.Send(canceled, b) },
			"Post": func() error {
				if err := client.Post(b, done); err != nil {
					return err
				}
				return <-posted
			},
			"PostGather": func() error {
				parts[0], parts[1], parts[2] = b[:size/3], b[size/2:], b[size/3:size/2]
				if err := client.PostGather(parts[0], parts[1:], done); err != nil {
					return err
				}
				return <-posted
			},
		} {
			t.Run(fmt.Sprintf("%s %d", name, size), func(t *testing.T) {
				offer(name == "Send offered")
				op := func() {
					if err := send(); err != nil {
						t.Fatal(err)
					}
					m, err := server.Recv(ctx)
					if err != nil {
						t.Fatal(err)
					}
					p.nodes[0].Free(m)
				}
				for range 300 { // rings grow, pools fill
					op()
				}
				if n := testing.AllocsPerRun(500, op); n != 0 {
					t.Errorf("%v allocations a message", n)
				}
			})
		}
		p.nodes[1].Free(b)
	}
}

// TestSharedReceivesAllocateNothing: as TestSteadyStateAllocatesNothing, with receives
// from a shared queue.
func TestSharedReceivesAllocateNothing(t *testing.T) {
	if checked() {
		t.Skip("the race detector and BEMALLOC_DEBUG allocate")
	}
	p := newPair(t, be.Config{SharedReceives: 256})
	server, client := p.connect(t, "allocs")
	ctx := context.Background()
	for _, size := range []int{64, 8192, 100000} {
		b := alloc(t, p.nodes[1], size, 1)
		op := func() {
			for range 20 { // more than is promised
				if err := client.Send(ctx, b); err != nil {
					t.Fatal(err)
				}
				m, err := server.Recv(ctx)
				if err != nil {
					t.Fatal(err)
				}
				p.nodes[0].Free(m)
			}
		}
		for range 50 {
			op()
		}
		if n := testing.AllocsPerRun(50, op); n != 0 {
			t.Errorf("%d bytes: %v allocations in 20 messages", size, n)
		}
		p.nodes[1].Free(b)
	}
}
