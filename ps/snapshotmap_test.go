package ps

import (
	"bytes"
	"strings"
	"testing"
)

// TestRestoreByMap: a snapshot is restored where the shard has no other keys than it had
// then: under the same map, under a newer one with less, and by an older one, which is
// replaced by the snapshot's. It is refused where rows would be missing.
func TestRestoreByMap(t *testing.T) {
	replicas := append(mapOf(1).Replicas, nil)
	maps := map[string]*Map{
		"all":         {Version: 5, By: ByRange, Bounds: []Bound{{0, 0}}, Replicas: replicas},
		"low":         {Version: 6, By: ByRange, Bounds: []Bound{{0, 0}, {50, 1}}, Replicas: replicas},
		"lower":       {Version: 7, By: ByRange, Bounds: []Bound{{0, 0}, {20, 1}}, Replicas: replicas},
		"other low":   {Version: 6, By: ByRange, Bounds: []Bound{{0, 0}, {60, 1}}, Replicas: replicas},
		"high":        {Version: 7, By: ByRange, Bounds: []Bound{{0, 1}, {50, 0}}, Replicas: replicas},
		"all by hash": {Version: 6, By: ByHash, Bounds: []Bound{{0, 0}}, Replicas: replicas},
	}
	for _, tt := range []struct {
		of, under string
		version   uint32 // of the map then; 0: it is refused
		rows      int
		says      string
	}{
		{"low", "low", 6, 50, ""},
		{"low", "lower", 7, 20, ""},
		{"low", "all", 6, 50, ""},
		{"all", "low", 6, 50, ""},
		{"low", "other low", 0, 0, "other keys"},
		{"low", "high", 0, 0, "other keys"},
		{"lower", "", 0, 0, "another table"},
		{"all", "all by hash", 0, 0, "by range"},
		{"", "all by hash", 6, 100, ""},
		{"", "", 0, 100, ""},
	} {
		t.Run(tt.of+" under "+tt.under, func(t *testing.T) {
			s := newTestShard(t, Config{Map: maps[tt.of]})
			for key := range uint64(100) {
				if _, err := s.load(key, []float32{1}); err != nil {
					t.Fatal(err)
				}
			}
			var b bytes.Buffer
			if err := s.Snapshot(&b); err != nil {
				t.Fatal(err)
			}
			again := newTestShard(t, Config{Map: maps[tt.under]})
			err := again.Restore(&b)
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) || again.Rows() != 0 || again.own.m != maps[tt.under] {
					t.Errorf("it is restored, or refused with %v; %d rows", err, again.Rows())
				}
				return
			}
			if err != nil || again.own.version() != tt.version || again.Rows() != tt.rows {
				t.Errorf("%v; map version %d, %d rows", err, again.own.version(), again.Rows())
			}
		})
	}
}

// TestLongMapInSnapshot: a map whose text is longer than a block is restored whole, with
// those before it.
func TestLongMapInSnapshot(t *testing.T) {
	m := mapOf(3)
	for i := range uint64(20000) {
		m.Bounds = append(m.Bounds, Bound{First: (i + 1) << 40})
	}
	s := newTestShard(t, Config{Map: m})
	s.own.before, s.own.past = mapOf(2), []*Map{mapOf(1), mapOf(2)}
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	again := newTestShard(t, Config{Map: mapOf(1)})
	if err := again.Restore(&b); err != nil {
		t.Fatal(err)
	}
	if got := again.own; len(got.m.Bounds) != len(m.Bounds) || got.before == nil || got.before.Version != 2 || got.floor != 3 || len(got.past) != 2 || got.past[1].Version != 2 {
		t.Errorf("%d bounds of %d, %+v, %+v", len(got.m.Bounds), len(m.Bounds), got.before, got.past)
	}
}
