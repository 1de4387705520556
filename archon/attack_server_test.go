package archon

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestHostileServersOnBothTransports: whatever a server sends that it may not, the client's
// call and stream end with an error that says so.
func TestHostileServersOnBothTransports(t *testing.T) {
	item := func(id CallID, n int) []byte {
		return crafted(header{kind: kindItem, id: id, payload: uint32(n)}, make([]byte, n))
	}
	onBothTransports(t, func(t *testing.T, tr Transport, u *underAttack) {
		for _, c := range []struct {
			desc string
			send [][]byte
		}{
			{"a response to no call", [][]byte{crafted(header{kind: kindResponse, id: newCallID(100, 0)}, nil)}},
			{"items of a call without a stream", [][]byte{item(0, 1)}},
			{"items beyond the window", [][]byte{item(1, 90), item(1, 90), item(1, 90), item(1, 90)}},
			{"an item of no stream", [][]byte{item(5, 1)}},
			{"a pong to no ping", [][]byte{crafted(header{kind: kindPong, id: 9}, nil)}},
			{"a request", [][]byte{request(EchoMethod, 0, nil)}},
			{"a window", [][]byte{crafted(header{kind: kindWindow, id: 1, window: 1}, nil)}},
			{"a message cut off", [][]byte{item(1, 8)[:20]}},
			{"a message of nothing", [][]byte{{}}},
			{"metadata of zeros", [][]byte{crafted(header{kind: kindResponse, meta: 8}, make([]byte, 8))}},
			{"a detail as long as the message", [][]byte{crafted(header{kind: kindResponse, code: Internal, detail: 1 << 30}, nil)}},
			{"an ended stream that goes on", [][]byte{crafted(header{kind: kindResponse, id: 1, payload: 1}, []byte{1})}},
		} {
			t.Run(c.desc, func(t *testing.T) {
				l, err := tr.Listen("127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				client, err := Dial(ctx, u.good, l.Addr().String(), "x", ClientConfig{})
				if err != nil {
					t.Fatal(err)
				}
				sock, err := l.Accept(ctx)
				if err != nil {
					t.Fatal(err)
				}
				requests, ended := make(chan struct{}, 10), make(chan struct{})
				sock.OnMessage(func(b []byte, err error) {
					if err != nil {
						close(ended)
						return
					}
					sock.Free(b)
					requests <- struct{}{}
				})
				over := make(chan error, 1)
				req, err := client.Alloc(0)
				if err != nil {
					t.Fatal(err)
				}
				if err := client.Go(&Call{Method: EchoMethod, Request: req}, func(call *Call) {
					call.Response.Release()
					over <- call.Err
				}); err != nil {
					t.Fatal(err)
				}
				stream, err := client.Open(ctx, &Invocation{Method: countMethod, Window: 100})
				if err != nil {
					t.Fatal(err)
				}
				<-requests
				<-requests
				for _, m := range c.send {
					b, err := sock.Alloc(len(m))
					if err != nil {
						t.Fatal(err)
					}
					copy(b, m)
					if sock.Post(b, func(err error) {
						if err == nil {
							sock.Free(b)
						}
					}) != nil {
						sock.Free(b) // the client has hung up already
					}
				}
				select {
				case err := <-over:
					if !errors.Is(err, ErrProtocol) {
						t.Errorf("the call ended with %v", err)
					}
				case <-time.After(20 * time.Second):
					t.Error("the client does not mind")
					client.Close()
				}
				for err = nil; err == nil; {
					var m Response
					m, err = stream.Recv()
					m.Release()
				}
				stream.Close()
				if !errors.Is(client.Err(), ErrProtocol) {
					t.Errorf("the client ended with %v", client.Err())
				}
				<-client.Done()
				client.Close()
				<-ended
				sock.Close()
			})
		}
	})
}

// FuzzBytesOverBE has a server get any bytes as a message of package be: a bundle, or one
// that travels by itself.
func FuzzBytesOverBE(f *testing.F) {
	f.Add(makeBundle(request(EchoMethod, 1, []byte("a")), crafted(header{kind: kindPing, id: 1}, nil)))
	f.Add(makeBundle(streamRequest(1, 100, 3), streamRequest(1, 100, 3), crafted(header{kind: kindCancel, id: 1}, nil)))
	f.Add(request(WorkerMethod, 2, make([]byte, 3000)))
	f.Add([]byte{bundleMagic, 0, 0xff, 0xff})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		u, s, good := fuzzedServer(t)
		a := u.attack(t)
		gone := a.hear()
		a.raw(b)
		if _, err := CallOn(t, context.Background(), good, EchoMethod, []byte("still there?")); err != nil {
			t.Fatal(err)
		}
		a.close()
		<-gone
		for end := time.Now().Add(20 * time.Second); s.load.streams.Load() != 0 || s.load.held.Load() != 0; time.Sleep(100 * time.Microsecond) {
			if time.Now().After(end) {
				t.Fatal("something is left after the connection")
			}
		}
	})
}
