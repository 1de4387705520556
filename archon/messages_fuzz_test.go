package archon

import (
	"context"
	"encoding/binary"
	"testing"
)

// appendMessage adds a message behind its length, the form in which the fuzzers get
// a run of them.
func appendMessage(run []byte, h header, body ...byte) []byte {
	m := append(make([]byte, HeaderSize), body...)
	h.put(m)
	return append(binary.LittleEndian.AppendUint16(run, uint16(len(m))), m...)
}

// eachMessage posts the messages of a run on a socket.
func eachMessage(s *memSocket, run []byte) {
	for len(run) >= 2 {
		n := min(int(binary.LittleEndian.Uint16(run)), len(run)-2)
		b, _ := s.Alloc(n)
		copy(b, run[2:])
		run = run[2+n:]
		if s.Post(b, func(err error) {
			if err == nil {
				s.Free(b)
			}
		}) != nil {
			s.Free(b)
		}
	}
}

// FuzzServerMessages sends a server any messages in any order. Whatever comes, it
// neither panics nor hangs, and every buffer is freed once, which memPair checks.
func FuzzServerMessages(f *testing.F) {
	stream := header{kind: kindRequest, flags: flagStream, payload: 6, id: 1, method: countMethod.id, window: 100}
	echoed := header{kind: kindRequest, payload: 1, method: EchoMethod.id}
	run := appendMessage(nil, echoed, 'x')
	run = appendMessage(run, stream, 9, 60, 0, 0, 0, 0)
	run = appendMessage(run, header{kind: kindWindow, id: 1, window: 50})
	run = appendMessage(run, header{kind: kindPing, id: 3})
	run = appendMessage(run, header{kind: kindCancel, id: 1})
	run = appendMessage(run, header{kind: kindGoAway})
	f.Add(run)
	run = appendMessage(nil, stream, 9, 60, 0, 0, 0, 0)
	f.Add(appendMessage(run, stream, 9, 60, 0, 0, 0, 1)) // the same slot twice
	f.Add(appendMessage(run, header{kind: kindWindow, id: 1, window: maxWindow}))
	oneWay := header{kind: kindRequest, flags: flagOneWay, method: EchoMethod.id, meta: 8}
	f.Add(appendMessage(nil, oneWay, 1, 1, 0, 'k', 'v', 0, 0, 0))
	f.Fuzz(func(t *testing.T, run []byte) {
		s := NewServer(ServerConfig{MaxCalls: 8, Workers: 1, Queue: 2, MaxStreams: 2, MaxUnsent: 100})
		s.HandleInline(EchoMethod, echo)
		s.Handle(WorkerMethod, echo)
		s.HandleStream(countMethod, stream60)
		a, b := memPair(t)
		a.OnMessage(func(m []byte, err error) {
			if err == nil {
				a.Free(m)
			}
		})
		s.ServeSocket(b)
		eachMessage(a, run)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Shutdown(ctx)
		if n := s.respSize.Load() + s.load.held.Load() + s.load.streams.Load(); n != 0 {
			t.Errorf("%d counted with nothing outstanding", n)
		}
	})
}

// FuzzClientMessages sends the same to a client with a call, a stream and a ping
// outstanding.
func FuzzClientMessages(f *testing.F) {
	run := appendMessage(nil, header{kind: kindItem, id: 1, payload: 2}, 'i', 't')
	run = appendMessage(run, header{kind: kindPong, method: 5})
	run = appendMessage(run, header{kind: kindResponse, payload: 1}, 'r')
	run = appendMessage(run, header{kind: kindGoAway, code: Unavailable, detail: 1}, 'b')
	f.Add(appendMessage(run, header{kind: kindResponse, id: 1, code: Aborted, detail: 1}, 'd'))
	f.Add(appendMessage(nil, header{kind: kindItem, payload: 1}, 'i')) // not a stream
	f.Add(appendMessage(nil, header{kind: kindResponse, id: 1, payload: 1}, 'i'))
	f.Add(appendMessage(run, header{kind: kindItem, id: 1, payload: 200}, make([]byte, 200)...))
	f.Fuzz(func(t *testing.T, run []byte) {
		a, b := memPair(t)
		b.OnMessage(func(m []byte, err error) {
			if err == nil {
				b.Free(m)
			}
		})
		c := NewClient(a, ClientConfig{})
		over := make(chan struct{}, 2)
		req, _ := c.Alloc(0)
		if err := c.Go(&Call{Method: EchoMethod, Request: req}, func(call *Call) {
			call.Response.Release()
			over <- struct{}{}
		}); err != nil {
			t.Fatal(err)
		}
		s, err := c.Open(context.Background(), &Invocation{Method: countMethod, Window: 100})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.GoPing(&Ping{}, func(*Ping) { over <- struct{}{} }); err != nil {
			t.Fatal(err)
		}
		eachMessage(b, run)
		b.Close()
		<-c.Done()
		<-over
		<-over
		for err == nil {
			var m Response
			m, err = s.Recv()
			m.Release()
		}
		s.Close()
		c.Close()
	})
}

// stream60 sends a message of 60 bytes for each byte of the request.
func stream60(call *ServerCall, out *Sender) error {
	for range call.Payload() {
		b, err := out.Alloc(60)
		if err != nil {
			return err
		}
		if err := out.Send(b); err != nil {
			return err
		}
	}
	return nil
}
