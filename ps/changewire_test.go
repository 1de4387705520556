package ps

import (
	"bytes"
	"testing"

	"github.com/byteexpress/byteexpress/archon/channel"
)

// FuzzChange: requests, answers and windows of a change that are taken are written the same
// again; and a group takes any of them without harm.
func FuzzChange(f *testing.F) {
	m := NewMap(ByHash, []channel.Endpoint{{TCP: "a:1"}}, []channel.Endpoint{{TCP: "b:1"}})
	m.Version = 2
	text, err := m.MarshalText()
	if err != nil {
		f.Fatal(err)
	}
	for step := stepLook; step <= stepAbort; step++ {
		r := changeRequest{ticket: 1 << 32, what: 9, pos: 1, step: step, m: m, text: text, sources: []stageSource{{shard: 1, addr: "b:1"}}}
		f.Add(r.append(nil))
	}
	p := pullRequest{ticket: 1 << 32, puller: 3, to: 1}
	f.Add(p.append(nil))
	st := changeState{inc: 9, version: 2, replicas: 2, self: 1, trouble: "none"}
	f.Add(st.append(nil))
	h := copyHead{inc: 9, prepared: true, ticket: 1 << 32, next: m}
	f.Add(h.append(nil))
	first := mapOf(1)
	f.Fuzz(func(t *testing.T, b []byte) {
		if st, err := parseChangeState(b); err == nil {
			if again := st.append(nil); !bytes.Equal(again, b) {
				t.Errorf("% x is % x again", b, again)
			}
		}
		if h, err := readCopyHead(bytes.NewReader(b)); err == nil {
			same, err := readCopyHead(bytes.NewReader(h.append(nil)))
			if err != nil || same.inc != h.inc || same.ticket != h.ticket || same.prepared != h.prepared {
				t.Errorf("%+v is %+v again, %v", h, same, err)
			}
		}
		s := newTestShard(t, Config{Map: first, MaxRows: 64})
		g := newGroup(s, 0, 1, 1<<12, 9, testLease)
		g.beginChange(1<<32, m)
		if r, err := parsePull(b); err == nil {
			if again := r.append(nil); !bytes.Equal(again, b) {
				t.Errorf("% x is % x again", b, again)
			}
			_, _ = g.pull(nil, r)
		}
		r, err := parseChange(b)
		if err != nil {
			return
		}
		if again := r.append(nil); !bytes.Equal(again, b) {
			t.Errorf("% x is % x again", b, again)
		}
		_, _ = g.step(&r, 0)
		if g.stage != nil && len(g.stage.sources) > 0 {
			g.pulled(g.stage, 0, b, nil)
		}
	})
}
