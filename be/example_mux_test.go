package be_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/byteexpress/byteexpress/be"
)

// A server that answers a thousand sockets on four goroutines.
func ExampleMux() {
	ctx, stop := context.WithCancel(context.Background())
	nodes, end := newNodes()
	defer end()
	l, err := nodes[0].Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}

	const sockets = 1000
	m := be.NewMux(sockets, func(s *be.Socket, b []byte, err error) {
		if err != nil {
			s.Close()
		} else if s.Send(ctx, b) == nil { // the answer is the request
			s.Node().Free(b)
		}
	})
	var goroutines sync.WaitGroup
	for range 4 {
		goroutines.Go(func() { m.Serve(ctx) })
	}
	goroutines.Go(func() {
		for {
			s, err := l.Accept(ctx)
			if err != nil {
				return
			}
			if m.Add(s) != nil {
				s.Close() // more than the Mux was made for
			}
		}
	})

	answers := 0
	for range sockets {
		s, err := nodes[1].Dial(ctx, l.Addr().String(), "echo")
		if err != nil {
			log.Fatal(err)
		}
		b, err := nodes[1].Alloc(4)
		if err != nil {
			log.Fatal(err)
		}
		copy(b, "ping")
		if err := s.Send(ctx, b); err != nil {
			log.Fatal(err)
		}
		nodes[1].Free(b)
		if b, err = s.Recv(ctx); err != nil {
			log.Fatal(err)
		}
		if string(b) == "ping" {
			answers++
		}
		nodes[1].Free(b)
	}
	stop()
	goroutines.Wait()
	fmt.Println(answers, "answers")
	// Output: 1000 answers
}
