package be_test

import (
	"context"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/bemalloc"
)

// TestPostWithoutDone: whatever is posted, nobody has to be told of its end.
func TestPostWithoutDone(t *testing.T) {
	for _, check := range []bool{false, true} {
		p := newPair(t, be.Config{Debug: bemalloc.Debug{Check: check}})
		server, client := p.connect(t, "no done")
		ctx, cancel := context.WithCancel(context.Background())
		room := alloc(t, p.nodes[0], 100, 0)
		pub, err := server.Publish(room)
		if err != nil {
			t.Fatal(err)
		}
		seen := alloc(t, p.nodes[0], 100, 0)
		x, err := p.nodes[0].Expose(seen)
		if err != nil {
			t.Fatal(err)
		}
		token := x.Token()
		post := []struct {
			name string
			do   func(b []byte) error
		}{
			{"Post", func(b []byte) error { return client.Post(b, nil) }},
			{"PostContext", func(b []byte) error { return client.PostContext(ctx, b, nil) }},
			{"PostGather", func(b []byte) error { return client.PostGather(b[:10], [][]byte{b[50:]}, nil) }},
			{"PostGatherContext", func(b []byte) error { return client.PostGatherContext(ctx, b[:10], [][]byte{b[50:]}, nil) }},
			{"PostPut", func(b []byte) error { return client.PostPut(pub.Token(), b, nil) }},
			{"PostPutContext", func(b []byte) error { return client.PostPutContext(ctx, pub.Token(), b, nil) }},
			{"PostRead", func(b []byte) error { return client.PostRead(&token, 0, b, nil) }},
		}
		var bufs [][]byte
		for _, c := range post {
			b := alloc(t, client.Node(), 100, 1)
			if err := c.do(b); err != nil {
				t.Errorf("check %v: %s: %v", check, c.name, err)
			}
			bufs = append(bufs, b)
		}
		for range 4 {
			b, err := server.Recv(limit(t))
			if err != nil {
				t.Fatal(err)
			}
			p.nodes[0].Free(b)
		}
		for st := client.Node().Stats(); st.Sending+st.InFlight > 0 || st.Puts < 2 || st.Fetches < 1; st = client.Node().Stats() {
			time.Sleep(time.Millisecond)
		}
		cancel()
		server.Close()
		<-pub.Done()
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		p.nodes[0].Free(room)
		p.nodes[0].Free(seen)
		for _, b := range bufs {
			client.Node().Free(b)
		}
	}
}
