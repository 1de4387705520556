package ps

import (
	"bytes"
	"math"
	"testing"

	"github.com/byteexpress/byteexpress/archon"
)

// FuzzRequest: a request that is taken has the length that its header says.
func FuzzRequest(f *testing.F) {
	b := make([]byte, pushHeader+8+8)
	putRequestHeader(b, 1, 2, 1, 3)
	putMapVersion(b, 7)
	putRequestID(b, requestID{ClientID{1, 2}, 3})
	f.Add(b, true)
	f.Add(b[:fetchHeader+8], false)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 1, 0, 0, 0x80, 7, 0, 0, 0}, true)
	cfg := Config{Dim: 2, Shard: 1, Shards: 3, MaxKeys: math.MaxInt32, Map: &Map{Version: 7}}
	f.Fuzz(func(t *testing.T, b []byte, push bool) {
		r, err := parseRequest(b, &cfg, push)
		if err == nil {
			own := newOwnership(&cfg)
			err = own.takes(&r)
		}
		if err != nil {
			if archon.CodeOf(err) == archon.Unknown {
				t.Errorf("error without a code: %v", err)
			}
			return
		}
		header, gradients := fetchHeader, 0
		again := make([]byte, len(b))
		putRequestHeader(again, r.count, cfg.Dim, cfg.Shard, cfg.Shards)
		putMapVersion(again, 7)
		if push {
			header, gradients = pushHeader, 8*r.count
			putRequestID(again, r.id)
		}
		if !bytes.Equal(again[:header], b[:header]) {
			t.Errorf("header % x is % x again", b[:header], again[:header])
		}
		if len(r.keys) != 8*r.count || len(r.gradients) != gradients || header+len(r.keys)+gradients != len(b) {
			t.Errorf("%d keys in %d bytes, %d bytes of gradients, of %d", r.count, len(r.keys), len(r.gradients), len(b))
		}
		for i := range r.count {
			r.key(i)
		}
	})
}
