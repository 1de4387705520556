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
	for i, size := range sizes {
		exchange(t, client, server, size, byte(i))
	}
	if s := p.nodes[0].Stats(); s.Copies != 0 || s.Received != uint64(len(sizes)) || s.RNR != 0 {
		t.Errorf("stats: %+v", s)
	}
}
