package ps

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/internal/testnet"
	"github.com/pkg/errors"
)

// hostileShard answers every fetch and push with a refusal.
type hostileShard struct {
	net      *testnet.Net
	says     func(version uint32) uint32 // the version of the refusal, to a request of another one
	text     func() string               // of its map
	asked    atomic.Int64                // for the map
	refusals atomic.Int64
}

func (h *hostileShard) serve(t *testing.T, host string) (end func()) {
	s := archon.NewServer(archon.ServerConfig{})
	refuse := func(call *archon.ServerCall) error {
		h.refusals.Add(1)
		version := h.says(binary.LittleEndian.Uint32(call.Payload()[12:]))
		call.AddReplyMetadata(versionKey, strconv.FormatUint(uint64(version), 10))
		return archon.Errorf(archon.Aborted, "another map")
	}
	for _, err := range []error{
		s.HandleInline(MethodFetch, refuse), s.HandleInline(MethodPush, refuse),
		s.HandleInline(MethodMap, func(call *archon.ServerCall) error {
			h.asked.Add(1)
			return encodeTo(call, []byte(h.text()))
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return serve(t, archon.TCP{Network: h.net.Host(host)}, host+":1", s)
}

// TestHostileMaps: whatever maps a shard that is out of order answers with, a request ends,
// with or without a deadline, and says why; it takes no more than its share of memory,
// attempts and connections.
func TestHostileMaps(t *testing.T) {
	const ends, first = "by hash\nfrom 0 0\nshard 0\ntcp=shard:1\n", "version 2\nby hash\nfrom 0 0\n"
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	constant := func(text string) func() string { return func() string { return text } }
	version := uint32(1)
	newer := func() string { // with other shards each time
		version++
		other := ""
		for i := range version % 30 {
			other += fmt.Sprintf("shard %d\ntcp=shard:1\n", i+1)
		}
		return fmt.Sprintf("version %d\nby hash\nfrom 0 %d\nshard 0\ntcp=shard:1\n%send\n", version, version%30, other)
	}
	for _, tt := range []struct {
		desc   string
		newest uint32 // that it says; 0: one more than the client has
		text   func() string
		code   archon.Code // without a deadline; with one it is DeadlineExceeded, or the same
		says   string
	}{
		{"ever newer maps", 0, newer, archon.Aborted, "the map changed 64 times"},
		{"the last version", 2, constant("version 4294967295\n" + ends + "end\n"), archon.DeadlineExceeded, "the client has version 4294967295: ps: shard 0 of 1: the shard has map version 2"},
		{"many shards", 2, constant(first + lines(1<<16, "shard %d\ntcp=x:1\n") + "end\n"), archon.DeadlineExceeded, `shard "4096", next is 4096 of at most 4096`},
		{"many replicas", 2, constant(first + "shard 0\n" + lines(1<<16, "tcp=x:%d\n") + "end\n"), archon.DeadlineExceeded, "after 8192 replicas"},
		{"a part of the text", 2, constant("version 2\n" + ends), archon.DeadlineExceeded, "cut off after line 5"},
		{"no text", 2, constant(""), archon.DeadlineExceeded, "cut off after line 0"},
		{"a range is missing", 2, constant("version 2\nby hash\nfrom 5 0\nshard 0\ntcp=shard:1\nend\n"), archon.DeadlineExceeded, "first bound must be at 0"},
		{"ranges overlap", 2, constant(first + "from 9 0\nfrom 5 0\nshard 0\ntcp=shard:1\nend\n"), archon.DeadlineExceeded, "they ascend"},
		{"a replica is there twice", 2, constant(first + "shard 0\ntcp=shard:1\ntcp=shard:1\nend\n"), archon.DeadlineExceeded, "two replicas have the name"},
		{"nobody is there", 2, constant(first + "shard 0\ntcp=nobody:1\nend\n"), archon.Unavailable, "no replica"},
		{"nobody answers", 2, func() string { time.Sleep(3 * time.Second); return "" }, archon.DeadlineExceeded, "ps: fetch the map"},
		{"the same map", 2, constant("version 1\n" + ends + "end\n"), archon.DeadlineExceeded, "the client has version 1: ps: shard 0 of 1: the shard has map version 2"},
	} {
		for _, timeout := range []time.Duration{time.Second, 0} {
			if slowed && timeout == 0 && strings.HasPrefix(tt.desc, "many") {
				continue // long texts, many times
			}
			t.Run(fmt.Sprint(tt.desc, timeout), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := &hostileShard{net: testnet.New(1), text: tt.text, says: func(version uint32) uint32 { return max(tt.newest, 2) }}
					if tt.newest == 0 {
						h.says = func(version uint32) uint32 { return version + 1 }
					}
					version = 1
					defer h.serve(t, "shard")()
					m := NewMap(ByHash, []channel.Endpoint{{TCP: "shard:1"}})
					c, err := NewMapClient(1, m, channel.Config{Service: "ps", TCP: archon.TCP{Network: h.net.Host("client")}, Seed: 1})
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					before := runtime.NumGoroutine()
					began, over := time.Now(), make(chan struct{}, 1)
					p := &PushCall{Keys: []uint64{1, 2, 3}, Gradients: []float32{1, 2, 3}, Timeout: timeout}
					c.GoPush(p, func(*PushCall) { over <- struct{}{} })
					<-over
					limit := 2 * waitOlder
					if timeout > 0 {
						limit = timeout
					}
					if took := time.Since(began); took > limit {
						t.Errorf("it took %v, may take %v", took, limit)
					}
					if timeout == 0 || tt.code == archon.Aborted {
						if !errors.Is(p.Err, tt.code) || !strings.Contains(p.Err.Error(), tt.says) {
							t.Errorf("it must be %v, and say %q: %v", tt.code, tt.says, p.Err)
						}
					} else if !errors.Is(p.Err, archon.DeadlineExceeded) {
						t.Errorf("with a deadline: %v", p.Err)
					}
					if n := h.refusals.Load(); n > 300 || len(p.fan.all) > 64+30 {
						t.Errorf("%d attempts, %d parts", n, len(p.fan.all))
					}
					if n := runtime.NumGoroutine() - before; n > 40*8 {
						t.Errorf("%d goroutines more", n)
					}
				})
			})
		}
	}
}

// TestAskedByTurns: while a shard cannot be reached, the others are asked for a newer map,
// few at a time, and each in time.
func TestAskedByTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shards = 30
		n := testnet.New(1)
		m := NewMap(ByHash, make([][]channel.Endpoint, shards)...)
		var all [shards]*hostileShard
		for i := range all {
			host := fmt.Sprint("s", i)
			m.Replicas[i] = []channel.Endpoint{{TCP: host + ":1"}}
			all[i] = &hostileShard{net: n, text: func() string { return "" }}
			if i > 0 { // nobody is at the first
				defer all[i].serve(t, host)()
			}
		}
		c, err := NewMapClient(1, m, channel.Config{Service: "ps", TCP: archon.TCP{Network: n.Host("client")}, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		const ticks = 2 * shards / askMost
		time.Sleep(ticks*watchInterval + time.Second/2)
		c.Close()
		asked := 0
		for i, h := range all[1:] {
			n := int(h.asked.Load())
			if asked += n; n < 1 {
				t.Errorf("shard %d was never asked", i+1)
			}
		}
		if asked > (ticks+2)*askMost {
			t.Errorf("asked %d times in %d ticks", asked, ticks)
		}
	})
}
