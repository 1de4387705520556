package ps_test

import (
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/ps"
)

// newIDs gives every attempt of a push the id of another client, so that a shard cannot
// know that it is repeated. The nonce is at bytes 24 to 32, see wire.go.
func newIDs() archon.Interceptor {
	var nonce atomic.Uint64
	return func(call *archon.ServerCall, next archon.Handler) error {
		if call.Method() == ps.MethodPush {
			binary.LittleEndian.PutUint64(call.Payload()[24:], nonce.Add(1))
		}
		return next(call)
	}
}

// TestVirtualControls: without a defence, the runs of TestVirtualFaults show what it is
// for.
func TestVirtualControls(t *testing.T) {
	quick := virtualRecovery
	quick.HedgeQuantile = -1
	for _, tt := range []struct {
		desc, fault string
		change      func(r *virtualRun)
		shows       string // a part of what is to be found wrong
	}{
		{"no repetition", "killed, restarted later", func(r *virtualRun) { r.cfg.Recovery.MaxAttempts = 1 }, "request at"},
		{"no pings, time-outs and hedges", "hangs", func(r *virtualRun) {
			r.cfg.Recovery.PingInterval, r.cfg.Recovery.AttemptTimeout = time.Hour, -1
		}, "request at"},
		{"a push is not known again", "RDMA dies", func(r *virtualRun) { r.around = newIDs() }, "pushes of"},
		{"no TCP", "RDMA dies", func(r *virtualRun) { r.cfg.NoFallback = true }, "not on TCP"},
		{"no return", "RDMA dies", func(r *virtualRun) { r.cfg.Recovery.Settle = time.Hour }, "RDMA was used again after 1m"},
		{"no settle time", "set-up fails: no_device", func(r *virtualRun) { r.cfg.Recovery.Settle = time.Millisecond }, "before the settle time"},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			found := ""
			for seed := uint64(1); seed <= 10 && !strings.Contains(found, tt.shows); seed++ {
				r := virtualRun{seed: seed, cfg: channel.Config{Recovery: quick}}
				for _, f := range virtualFaults {
					if f.desc == tt.fault {
						r.fault = f
					}
				}
				tt.change(&r)
				found += strings.Join(r.run(t).wrong, "\n") + "\n"
			}
			if !strings.Contains(found, tt.shows) {
				t.Errorf("nothing with %q is seen to be wrong: %s", tt.shows, found)
			}
			t.Logf("%.1000s", found)
		})
	}
}
