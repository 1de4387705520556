package ps

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
)

// testMapPush is testPush by a map.
func testMapPush(id requestID, key uint64, version uint32) []byte {
	b := testPush(id, key)
	putMapVersion(b, version)
	return b
}

// mapOf is a map of one shard.
func mapOf(version uint32) *Map {
	m := NewMap(ByHash, []channel.Endpoint(nil))
	m.Version = version
	return m
}

// TestRepeatedAfterMapChange: a push that was applied is answered so by a map that has
// changed since, and by any; another one of that map is refused.
func TestRepeatedAfterMapChange(t *testing.T) {
	s := newTestShard(t, Config{Map: mapOf(2)})
	push := func(seq uint64, version uint32) error {
		return s.push(testMapPush(requestID{ClientID{1, 1}, seq}, 3, version))
	}
	if err := push(1, 2); err != nil {
		t.Fatal(err)
	}
	s.own.become(mapOf(3), 1)
	s.own.floor = 3
	for version := range uint32(5) {
		if err := push(1, version); err != nil {
			t.Errorf("a repetition by map %d: %v", version, err)
		}
	}
	if err := push(2, 2); !errors.Is(err, archon.Aborted) {
		t.Errorf("a new push by the old map: %v", err)
	}
	if s.sum(4) != 1 {
		t.Errorf("sum %v of 1 push", s.sum(4))
	}
}

// TestLatePushAfterKeysReturn: a push that came by an old map when the shard had lost its keys
// is refused for good: a copy of it that comes when they are back is too, and one whose keys
// never left is not. The maps that are remembered are bounded.
func TestLatePushAfterKeysReturn(t *testing.T) {
	of := func(version uint32, second int) *Map {
		return &Map{Version: version, By: ByRange, Bounds: []Bound{{0, 0}, {2, second}}, Replicas: make([][]channel.Endpoint, 2)}
	}
	s := newTestShard(t, Config{Map: of(1, 0)})
	seq := uint64(0)
	push := func(key uint64, version uint32) error {
		seq++
		return s.push(testMapPush(requestID{ClientID{1, 1}, seq}, key, version))
	}
	change := func(version uint32, second int) {
		s.own.become(of(version, second), uint64(version))
		s.own.open()
	}
	change(2, 1)
	change(3, 0)
	for _, c := range []struct {
		key     uint64
		version uint32
		taken   bool
	}{{2, 1, false}, {1, 1, true}, {1, 2, true}, {2, 3, true}} {
		if err := push(c.key, c.version); (err == nil) != c.taken || err != nil && !errors.Is(err, archon.Aborted) {
			t.Errorf("key %d by map %d: %v", c.key, c.version, err)
		}
	}
	for version := range uint32(maxPast) {
		change(4+version, 0)
	}
	if err := push(1, 2); !errors.Is(err, archon.Aborted) || len(s.own.past) != maxPast {
		t.Errorf("a push by a map that is forgotten: %v, %d are remembered", err, len(s.own.past))
	}
	if err := push(1, 3); err != nil {
		t.Error(err)
	}
}

// TestLogAfterMapChange: a peer's log that comes twice, the second time after the map has
// changed here, is taken.
func TestLogAfterMapChange(t *testing.T) {
	s := newTestShard(t, Config{Map: mapOf(2)})
	g := newGroup(s, 0, 2, 1<<12, 9, testLease)
	entries := appendEntry(nil, entryPush, testMapPush(requestID{ClientID{1, 1}, 1}, 3, 2))
	if err := g.take(bytes.Clone(entries), 1, 0); err != nil {
		t.Fatal(err)
	}
	s.own.become(mapOf(3), 1)
	s.own.floor = 3
	if err := g.take(entries, 1, 0); err != nil || s.sum(4) != 1 {
		t.Errorf("%v, sum %v", err, s.sum(4))
	}
}

// TestRefusedPushKeepsLog: a push that is refused takes nothing from the log.
func TestRefusedPushKeepsLog(t *testing.T) {
	s := newTestShard(t, Config{})
	g := newGroup(s, 0, 1, 4096, 9, testLease)
	for seq := range uint64(200) {
		if _, err := g.push(testPush(requestID{ClientID{1, 1}, 1 + seq}, 3), 0); err != nil {
			t.Fatal(err)
		}
	}
	before := *g.log
	bad := testPush(requestID{ClientID{1, 1}, 1000}, 3)
	putFloat(bad[pushHeader+8:], 0, float32(math.NaN()))
	for range 100 {
		if _, err := g.push(bytes.Clone(bad), 0); !errors.Is(err, archon.InvalidArgument) {
			t.Fatalf("%v", err)
		}
	}
	if g.log.first != before.first || g.log.next != before.next || g.log.head != before.head {
		t.Errorf("log %d to %d at %d, was %d to %d at %d", g.log.first, g.log.next, g.log.head, before.first, before.next, before.head)
	}
}
