package be_test

import (
	"testing"

	"github.com/byteexpress/byteexpress/be"
)

// sizes around every border: of packets, of eager messages, of fragments.
var sizes = []int{0, 1, 63, 64, 4095, 8191, 8192, 8193, 65535, 65536, 65537, 1 << 20, 1<<20 + 1}

func TestSizes(t *testing.T) {
	bothWays(t, newPair(t, be.Config{}), append(sizes, 64<<20))
}

// bothWays sends a message of each size to and fro and checks its bytes.
func bothWays(t *testing.T, p *pair, sizes []int) {
	server, client := p.connect(t, "sizes")
	ctx := limit(t)
	for i, size := range sizes {
		for _, way := range []struct {
			from, to     *be.Socket
			sendN, recvN *be.Node
		}{{client, server, p.nodes[1], p.nodes[0]}, {server, client, p.nodes[0], p.nodes[1]}} {
			b := alloc(t, way.sendN, size, byte(i))
			if err := way.from.Send(ctx, b); err != nil {
				t.Fatalf("send %d bytes: %v", size, err)
			}
			way.sendN.Free(b)
			got, err := way.to.Recv(ctx)
			if err != nil {
				t.Fatalf("receive %d bytes: %v", size, err)
			}
			check(t, got, size, byte(i))
			way.recvN.Free(got)
		}
	}
	if s := p.nodes[0].Stats(); s.Copies != 0 || s.Received != uint64(len(sizes)) || s.RNR != 0 {
		t.Errorf("stats: %+v", s)
	}
}
