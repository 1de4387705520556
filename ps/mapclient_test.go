package ps_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/internal/testprocess"
	"github.com/byteexpress/byteexpress/ps"
)

// TestMapClient: three shards of two replicas by a map, by hash and by range: each holds
// the rows that the map says and no others, and a client of another map gets it.
func TestMapClient(t *testing.T) {
	for _, by := range []ps.Sharding{ps.ByHash, ps.ByRange} {
		t.Run(by.String(), func(t *testing.T) { testMapClient(t, by) })
	}
}

func testMapClient(t *testing.T, by ps.Sharding) {
	const shards, replicas, keys = 3, 2, 60
	m := ps.NewMap(by, make([][]channel.Endpoint, shards)...)
	m.Version = 7
	for i := range m.Bounds {
		if by == ps.ByRange {
			m.Bounds[i].First = uint64(10 * i) // 10 keys, 10 keys, the rest
		}
		for range replicas {
			m.Replicas[i] = append(m.Replicas[i], channel.Endpoint{TCP: testprocess.Addr(t)})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var held [shards]*ps.Shard
	for i, list := range m.Replicas {
		peers := []string{testprocess.Addr(t), testprocess.Addr(t)}
		var all []*ps.Replica
		for j, at := range list {
			s, r, _, _ := replicaOf(t, tcp, ps.Config{Dim: replicaDim, Shard: i, Map: m, LearningRate: 1}, peers, j, at.TCP)
			held[i], all = s, append(all, r)
		}
		for _, r := range all {
			if err := r.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	client := func(m *ps.Map) *ps.Client {
		c, err := ps.NewMapClient(replicaDim, m, channel.Config{Service: "ps"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	gradients := make([]float32, keys*replicaDim)
	for i := range gradients {
		gradients[i] = -1
	}
	if err := client(m).Push(ctx, keyRange(keys), gradients); err != nil {
		t.Fatal(err)
	}
	for i, s := range held {
		rows := 0
		for key := range uint64(keys) {
			v := s.Version(key)
			if mine := m.Owner(key) == i; mine != (v == 1) {
				t.Errorf("shard %d has version %d of key %d, which is of shard %d", i, v, key, m.Owner(key))
			}
			rows += int(v)
		}
		if rows != s.Rows() || rows == 0 {
			t.Errorf("shard %d has %d rows, %d are known", i, s.Rows(), rows)
		}
	}

	// A client of an older map gets the shards' own.
	old := *m
	old.Version = 6
	old.Bounds = []ps.Bound{{Shard: 2}}
	c := client(&old)
	if err := c.Push(ctx, keyRange(keys), gradients); err != nil {
		t.Errorf("push by an old map: %v", err)
	}
	if got := c.Map(); !reflect.DeepEqual(got, m) || c.Shards() != shards {
		t.Errorf("the client's map is %+v, must be %+v", got, m)
	}
	// A client of a newer one waits for the shards to get that.
	newer := *m
	newer.Version = 8
	c = client(&newer)
	late, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := c.Push(late, keyRange(keys), gradients); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("push by a newer map: %v", err)
	}
	if err := c.Update(m); err != nil || c.Map() != &newer {
		t.Errorf("the client went back to an older map, %v", err)
	}
	c = client(m)
	f, err := c.Fetch(ctx, keyRange(keys))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	for i := range keys {
		if v := f.Row(i)[0]; v != 2 {
			t.Errorf("row %d got %v pushes, must have 2: what was refused was applied, or is lost", i, v)
		}
	}
	if raceEnabled {
		return
	}
	several := keyRange(keys)
	once := func() {
		if err := c.Push(ctx, several, gradients); err != nil {
			t.Fatal(err)
		}
		f, err := c.Fetch(ctx, several)
		if err != nil {
			t.Fatal(err)
		}
		f.Release()
	}
	for range 200 {
		once()
	}
	if n := testing.AllocsPerRun(200, once); n != 0 {
		t.Errorf("%v allocations a push and a fetch", n)
	}
}
