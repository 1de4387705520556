package ps_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/ps"
)

// TestMapClient: three shards of two replicas by a map, by hash and by range: each holds
// the rows that the map says and no others, and a client of another map is told so, gets
// the shard's map, and goes on with that.
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
			m.Replicas[i] = append(m.Replicas[i], channel.Endpoint{TCP: freeAddr(t)})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var held [shards]*ps.Shard
	for i, list := range m.Replicas {
		peers := []string{freeAddr(t), freeAddr(t)}
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

	old := *m
	old.Version = 6
	c := client(&old)
	var wrong *ps.WrongMapError
	if err := c.Push(ctx, keyRange(keys), gradients); !errors.As(err, &wrong) || wrong.Version != 7 || !errors.Is(err, archon.Aborted) {
		t.Errorf("push by an old map: %v", err)
	}
	if _, err := c.Fetch(ctx, keyRange(keys)); !errors.As(err, &wrong) || wrong.Version != 7 {
		t.Errorf("fetch by an old map: %v", err)
	}
	ask, err := channel.New(channel.Config{Service: "ps", Resolver: channel.Static(old.Replicas[1]...)})
	if err != nil {
		t.Fatal(err)
	}
	defer ask.Close()
	newer, err := ps.FetchMap(ctx, ask)
	if err != nil || !reflect.DeepEqual(newer, m) {
		t.Fatalf("the shard's map is %+v, must be %+v, %v", newer, m, err)
	}
	f, err := client(newer).Fetch(ctx, keyRange(keys))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	for i := range keys {
		if v := f.Row(i)[0]; v != 1 {
			t.Errorf("row %d got %v pushes, must have 1: what was refused was applied, or is lost", i, v)
		}
	}
}
