package channel_test

import (
	"context"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
)

// slowDial takes a while to reach all servers but one.
type slowDial struct {
	archon.Transport
	fast string
}

func (d slowDial) Dial(ctx context.Context, addr, service string) (archon.Socket, error) {
	if addr != d.fast {
		time.Sleep(200 * time.Millisecond)
	}
	return d.Transport.Dial(ctx, addr, service)
}

// TestFailedReplicaIsReachedFirst: the first replica to be reached fails every call; calls
// wait for the others to be reached, and none fails. When these cannot be reached at all,
// calls fail, with what the one said, and do not wait for ever.
func TestFailedReplicaIsReachedFirst(t *testing.T) {
	for _, others := range []bool{true, false} {
		var list []channel.Endpoint
		var servers []*server
		for _, name := range []string{"a", "b", "c"} {
			v := startServer(t, name, nil)
			servers = append(servers, v)
			list = append(list, channel.Endpoint{Name: name, TCP: v.tcp})
		}
		servers[1].fail.Store(&archon.Error{Code: archon.Unavailable})
		if !others {
			servers[0].stop()
			servers[2].stop()
		}
		ch := newChannel(t, channel.Config{Resolver: channel.Static(list...), TCP: slowDial{archon.TCP{}, servers[1].tcp}})
		if !others {
			if _, err := ask(limit(t), ch, echo, "x"); archon.CodeOf(err) != archon.Unavailable {
				t.Errorf("with no other replica: %v", err)
			}
			continue
		}
		l := startLoad(t, ch, 4)
		l.more(t, 1000)
		l.end()
		if st := ch.Stats(); float64(st.Attempts) > 1.2*float64(st.Calls) || st.Failed > 0 {
			t.Errorf("%+v", st.CallStats)
		}
	}
}
