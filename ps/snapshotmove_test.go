package ps

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// savedMove is the shards of a table, saved while its map changes.
type savedMove struct {
	from, to *Map
	newest   *Map // of those in the files
	files    []string
	pushed   [killedKeys]int64 // answered before
}

// restore gives the shards as they are restored under a map.
func (m *savedMove) restore(t *testing.T, by *Map) (list []*Shard) {
	for i, file := range m.files {
		s := newTestShard(t, Config{Shard: i, Map: by, LearningRate: 1})
		if err := s.RestoreFile(file); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// TestSnapshotsOfAMove: shards are saved in each phase of a change, under load, and restored:
// each by the map before, and then all by the newest that there is. Every key has its row
// at its owner, with all that was answered before. Those of a change that was
// decided serve when it is made again.
func TestSnapshotsOfAMove(t *testing.T) {
	dir, decided := t.TempDir(), (*savedMove)(nil)
	t.Run("saved", func(t *testing.T) {
		v := serveShards(t, 1)
		v.load(3)
		v.more("begin", 20)
		for last := phaseLook; last < phaseAbort; last++ {
			m := v.saveIn(last, dir)
			for _, s := range m.restore(t, m.from) {
				if m.newest == nil || s.Map().Version > m.newest.Version {
					m.newest = s.Map()
				}
			}
			list := m.restore(t, m.newest)
			for key := range uint64(killedKeys) {
				if got := list[m.newest.Owner(key)].Version(key); int64(got) < m.pushed[key] {
					t.Errorf("phase %d: key %d has %d pushes, %d were answered before", last, key, got, m.pushed[key])
				}
			}
			if last == phaseTake {
				decided = m
			}
			v.m = m.to
			v.more("go on", 10)
		}
		v.stop()
		v.wg.Wait()
		v.check()
	})
	t.Run("restored by the map before", func(t *testing.T) {
		v := &served{t: t, m: decided.from}
		v.serve(decided.files)
		for wait := 2 * time.Second; ; wait *= 2 { // a slow machine may not have asked all by then
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			err := Rebalance(ctx, decided.from, decided.to, RebalanceConfig{})
			cancel()
			if err == nil || wait > time.Minute {
				t.Fatalf("a shard that knows nothing of the change: %v", err)
			}
			if strings.Contains(err.Error(), fmt.Sprint("restore it by map version ", decided.to.Version)) {
				break
			}
		}
	})
	t.Run("restored", func(t *testing.T) {
		m := decided
		if m.newest.Version != m.to.Version {
			t.Fatal("control: no shard had the new map")
		}
		v := &served{t: t, m: m.newest}
		v.serve(m.files)
		if err := Rebalance(limit(t), m.from, m.to, RebalanceConfig{}); err != nil {
			t.Fatal(err)
		}
		for key := range uint64(killedKeys) {
			n := int64(v.shards[m.to.Owner(key)].Version(key))
			if n < m.pushed[key] {
				t.Errorf("key %d has %d pushes, %d were answered before", key, n, m.pushed[key])
			}
			v.pushed[key].Store(n)
			v.issued[key].Store(n)
		}
		v.load(3)
		v.more("again", 20)
		v.stop()
		v.wg.Wait()
		v.check()
	})
}

// saveIn changes the map, and saves the shards after the first round of a phase.
func (v *served) saveIn(last phase, dir string) *savedMove {
	t, m := v.t, &savedMove{from: v.m, to: v.next()}
	c, err := newCoordinator(m.from, m.to, 1, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	d := &rebalancer{c: c, cfg: RebalanceConfig{Transport: archon.TCP{}, Timeout: 250 * time.Millisecond}, lines: make([]line, len(c.members))}
	defer d.close()
	for ctx := limit(t); c.phase != phaseDone; {
		d.round(ctx)
		if c.phase == last && m.files == nil {
			for i := range m.pushed {
				m.pushed[i] = v.pushed[i].Load()
			}
			for i, s := range v.shards {
				m.files = append(m.files, filepath.Join(dir, fmt.Sprintf("%d of %d", last, i)))
				if err := s.SaveFile(m.files[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		pause, err := c.judge()
		if err != nil || ctx.Err() != nil {
			t.Fatal(err, ctx.Err())
		}
		time.Sleep(pause)
	}
	return m
}
