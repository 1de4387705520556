package ps_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/ps"
)

// randomMap draws a valid map.
func randomMap(rng *rand.Rand) *ps.Map {
	m := &ps.Map{Version: 1 + rng.Uint32N(9), By: ps.Sharding(rng.IntN(2)), Bounds: []ps.Bound{{}}}
	for i := range 1 + rng.IntN(6) {
		var list []channel.Endpoint
		for j := range rng.IntN(3) {
			list = append(list, channel.Endpoint{Name: string(rune('a' + j)), TCP: "10.0.0.1:7", Draining: i == 1})
		}
		m.Replicas = append(m.Replicas, list)
	}
	for range rng.IntN(9) {
		m.Bounds = append(m.Bounds, ps.Bound{First: 1 + rng.Uint64N(math.MaxUint64>>rng.IntN(62)), Shard: rng.IntN(len(m.Replicas))})
	}
	slices.SortFunc(m.Bounds, func(a, b ps.Bound) int {
		if a.First < b.First {
			return -1
		}
		return 1
	})
	m.Bounds = slices.CompactFunc(m.Bounds, func(a, b ps.Bound) bool { return a.First == b.First })
	return m
}

// TestMapOwner: the owner of a key is that of the last bound at or below its position,
// found the slow way, and the text of a map gives the same map.
func TestMapOwner(t *testing.T) {
	rng := seededRand(t)
	for range 300 {
		m := randomMap(rng)
		check := func(at uint64) {
			t.Helper()
			key, position := at, at
			if m.By == ps.ByHash {
				position = ps.Hash(key)
			}
			want := -1
			for _, b := range m.Bounds {
				if b.First <= position {
					want = b.Shard
				}
			}
			if got := m.Owner(key); got != want {
				t.Fatalf("%+v: key %#x is of shard %d, must be %d", m, key, got, want)
			}
		}
		for _, b := range m.Bounds {
			for _, at := range []uint64{b.First - 1, b.First, b.First + 1} {
				check(at)
			}
		}
		for range 50 {
			check(rng.Uint64())
		}
		text, err := m.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var again ps.Map
		if err := again.UnmarshalText(text); err != nil || !reflect.DeepEqual(*m, again) {
			t.Fatalf("%+v is %+v again, %v", *m, again, err)
		}
	}
}

// TestNewMap: by hash, a first map has keys where they are without one; by range, the
// shards' ranges are equally long.
func TestNewMap(t *testing.T) {
	rng := seededRand(t)
	for n := 1; n < 70; n++ {
		hash, by := ps.NewMap(ps.ByHash, make([][]channel.Endpoint, n)...), ps.NewMap(ps.ByRange, make([][]channel.Endpoint, n)...)
		if err := hash.Validate(); err != nil {
			t.Fatal(err)
		}
		for range 300 {
			key := rng.Uint64()
			if got, want := hash.Owner(key), ps.ShardOf(key, n); got != want {
				t.Fatalf("%d shards: key %#x is of %d, must be %d", n, key, got, want)
			}
		}
		for i, b := range by.Bounds {
			end := uint64(0)
			if i+1 < n {
				end = by.Bounds[i+1].First
			}
			if d := int64(end - b.First - uint64(math.MaxUint64/float64(n))); n > 1 && (d < -1<<12 || d > 1<<12) {
				t.Errorf("%d shards: range %d is %d too long", n, i, d)
			}
			if by.Owner(b.First) != i || by.Owner(end-1) != i {
				t.Errorf("%d shards: the ends of range %d are of %d and %d", n, i, by.Owner(b.First), by.Owner(end-1))
			}
		}
	}
}

// TestMapValidate refuses what is no map.
func TestMapValidate(t *testing.T) {
	for desc, spoil := range map[string]func(*ps.Map){
		"no version":      func(m *ps.Map) { m.Version = 0 },
		"sharding":        func(m *ps.Map) { m.By = 2 },
		"no shards":       func(m *ps.Map) { m.Replicas = nil },
		"no bounds":       func(m *ps.Map) { m.Bounds = nil },
		"a gap":           func(m *ps.Map) { m.Bounds[0].First = 1 },
		"a foreign shard": func(m *ps.Map) { m.Bounds[1].Shard = 2 },
		"equal replicas":  func(m *ps.Map) { m.Replicas[1] = []channel.Endpoint{{TCP: "a:1"}, {TCP: "a:1"}} },
		"no address":      func(m *ps.Map) { m.Replicas[1] = []channel.Endpoint{{Name: "a"}} },
		"twice":           func(m *ps.Map) { m.Bounds[1].First = 0 },
	} {
		m := ps.NewMap(ps.ByHash, nil, nil)
		if spoil(m); m.Validate() == nil {
			t.Errorf("%s: it is taken", desc)
		}
		if _, err := m.MarshalText(); err == nil {
			t.Errorf("%s: it has a text", desc)
		}
		if _, err := ps.NewShard(ps.Config{Dim: 1, Map: m}); err == nil {
			t.Errorf("%s: a shard takes it", desc)
		}
		if _, err := ps.NewMapClient(1, m, channel.Config{Service: "ps"}); err == nil {
			t.Errorf("%s: a client takes it", desc)
		}
	}
	blank := ps.NewMap(ps.ByHash, []channel.Endpoint{{Name: "a b", TCP: "x:1"}})
	if _, err := blank.MarshalText(); err == nil {
		t.Error("a name of two words has a text")
	}
}

// TestMapText: a text is taken whole or not at all.
func TestMapText(t *testing.T) {
	const whole = "version 3 # the third\nby range\nfrom 0 0\nfrom 0x10 1\n\nshard 0\nname=a tcp=x:1\nshard 1\nend # of it\n"
	var m ps.Map
	if err := m.UnmarshalText([]byte(whole)); err != nil || m.Version != 3 || m.By != ps.ByRange || len(m.Bounds) != 2 || len(m.Replicas[0]) != 1 || m.Replicas[1] != nil {
		t.Fatalf("%+v, %v", m, err)
	}
	end := strings.Index(whole, "end") + len("end")
	for n := range end {
		if got := new(ps.Map); got.UnmarshalText([]byte(whole[:n])) == nil {
			t.Errorf("the first %d bytes are taken for %+v", n, got)
		}
	}
	for old, changed := range map[string]string{
		"by range\n": "", "by range": "by range\nby hash", "version 3": "", "version 3 ": "version 3\nversion 4 ", "from 0 0\n": "", "end ": "end 1", "end # of it": "end\nshard 2", "of it": "of it\nend",
	} {
		text := strings.Replace(whole, old, changed, 1)
		if got := new(ps.Map); got.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q in place of %q is taken for %+v", changed, old, got)
		}
	}
}

// TestMapLimits: as many shards and replicas as may be are taken, with as many bounds, also
// from text; no more, and no longer text.
func TestMapLimits(t *testing.T) {
	if raceEnabled {
		t.Skip("takes long")
	}
	const shards, replicas, bounds, longest = 1 << 12, 1 << 13, 1 << 20, 40 << 20
	m := ps.NewMap(ps.ByRange, make([][]channel.Endpoint, shards)...)
	for i := range replicas {
		m.Replicas[i%shards] = append(m.Replicas[i%shards], channel.Endpoint{Name: fmt.Sprint("a-host.of-the-parameter-server.example-", i), TCP: fmt.Sprint("192.168.100.100:", i)})
	}
	for i := range uint64(bounds - shards) {
		m.Bounds = append(m.Bounds, ps.Bound{First: 1<<64 - bounds + shards + i, Shard: shards - 1})
	}
	text, err := m.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var again ps.Map
	if err := again.UnmarshalText(text); err != nil || len(again.Bounds) != bounds {
		t.Errorf("%d bounds, %v", len(again.Bounds), err)
	}
	refuses := func(desc, says string, m *ps.Map, text []byte) {
		t.Helper()
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", desc, err)
		}
		if err := again.UnmarshalText(text); err == nil {
			t.Errorf("%s: the text is taken", desc)
		}
	}
	end := len(text) - len("end\n")
	more := *m
	more.Replicas = append(slices.Clone(m.Replicas), nil)
	refuses("shards", "4097 shards", &more, []byte(string(text[:end])+"shard 4096\nend\n"))
	more.Replicas = slices.Clone(m.Replicas)
	more.Replicas[shards-1] = append(slices.Clone(m.Replicas[shards-1]), channel.Endpoint{TCP: "a:1"})
	refuses("replicas", "8193 replicas", &more, []byte(string(text[:end])+"tcp=a:1\nend\n"))
	small := "version 1\nby hash\nfrom 0 0\nshard 0\n"
	blank := strings.Repeat("\n", longest-len(small)-len("end\n"))
	for extra, taken := range []bool{true, false} {
		if err := again.UnmarshalText([]byte(small + blank + strings.Repeat("\n", extra) + "end\n")); (err == nil) != taken {
			t.Errorf("%d bytes too many: %v", extra, err)
		}
	}
	long := ps.NewMap(ps.ByHash, []channel.Endpoint{{Name: strings.Repeat("a", longest), TCP: "a:1"}})
	if _, err := long.MarshalText(); err == nil || !strings.Contains(err.Error(), "shorten the names") {
		t.Errorf("a text that would be refused: %v", err)
	}
}

// FuzzMap: a text that is taken is of a valid map, whose own text gives it again.
func FuzzMap(f *testing.F) {
	for _, m := range []*ps.Map{ps.NewMap(ps.ByHash, nil), ps.NewMap(ps.ByRange, []channel.Endpoint{{Name: "a", TCP: "x:1", Zone: "z"}}, []channel.Endpoint{{RDMA: "y:1"}})} {
		text, err := m.MarshalText()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(bytes.ReplaceAll(text, []byte("0x0"), []byte("1")))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, again ps.Map
		if m.UnmarshalText(b) != nil {
			return
		}
		text, err := m.MarshalText()
		if err != nil {
			t.Fatalf("%+v has no text: %v", m, err)
		}
		if err := again.UnmarshalText(text); err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v is %+v again, %v", m, again, err)
		}
		if s := m.Owner(uint64(len(b))); s >= len(m.Replicas) {
			t.Errorf("owner %d of %d", s, len(m.Replicas))
		}
	})
}
