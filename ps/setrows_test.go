package ps

import (
	"bytes"
	"errors"
	"maps"
	"testing"

	"github.com/byteexpress/byteexpress/archon"
)

// TestNoLoadWhileMapChanges: a shard that gives or gets rows has none set; before and after
// it has.
func TestNoLoadWhileMapChanges(t *testing.T) {
	now := NewMap(ByHash, nil, nil)
	next := *now
	next.Version, next.Bounds = 2, []Bound{{0, 0}}
	for shard, to := range map[int]func(*group){
		0: func(g *group) {
			g.bring(1<<32, &next, nil)
			g.finish(1 << 32)
		},
		1: func(g *group) { g.beginChange(1<<32, &next) },
	} {
		s := newTestShard(t, Config{Shard: shard, Map: now})
		r, err := s.Replicate(archon.NewServer(archon.ServerConfig{}), ReplicaConfig{Peers: []string{"a:1"}})
		if err != nil {
			t.Fatal(err)
		}
		load := func() error {
			_, err := s.Load(maps.All(map[uint64][]float32{1: {1}, 2: {1}, 3: {1}, 4: {1}}))
			return err
		}
		var saved bytes.Buffer
		if err := errors.Join(load(), s.Snapshot(&saved)); err != nil {
			t.Fatal(err)
		}
		refused := func(when string) {
			t.Helper()
			if err := load(); !errors.Is(err, archon.Unavailable) {
				t.Errorf("shard %d, %s: load: %v", shard, when, err)
			}
			if err := s.Restore(bytes.NewReader(saved.Bytes())); !errors.Is(err, archon.Unavailable) {
				t.Errorf("shard %d, %s: restore: %v", shard, when, err)
			}
		}
		g := r.group
		locked := func(f func()) {
			s.mu.Lock()
			defer s.mu.Unlock()
			f()
		}
		locked(func() { to(g) })
		refused("as rows move")
		if shard == 0 {
			locked(func() { err = g.commit(1<<32, &next, r.now()) })
			locked(func() { err = errors.Join(err, g.open(1<<32, -1, r.now())) })
		} else {
			locked(func() { g.abort(1 << 32) })
		}
		if err := errors.Join(err, load()); err != nil {
			t.Errorf("shard %d, in the end: %v", shard, err)
		}
		r.Close()
	}
}
