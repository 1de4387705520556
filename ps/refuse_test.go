package ps_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/ps"
)

func TestWrongDimensionAndShards(t *testing.T) { eachTransport(t, testWrongDimensionAndShards) }

func testWrongDimensionAndShards(t *testing.T, tr transport) {
	ctx := context.Background()
	cfg := ps.Config{Dim: 4, Shards: 2}
	_, addr0 := tr.serve(t, cfg)
	cfg.Shard = 1
	_, addr1 := tr.serve(t, cfg)
	for _, c := range []struct {
		desc  string
		dim   int
		addrs []string
		want  archon.Code
	}{
		{"dimension 5", 5, []string{addr0, addr1}, archon.InvalidArgument},
		{"one shard too few", 4, []string{addr0}, archon.FailedPrecondition},
		{"one too many", 4, []string{addr0, addr1, addr1}, archon.FailedPrecondition},
		{"in wrong order", 4, []string{addr1, addr0}, archon.FailedPrecondition},
	} {
		client, err := ps.Dial(ctx, tr.client, c.dim, c.addrs)
		if err != nil {
			t.Fatal(err)
		}
		keys := keyRange(20)
		if _, err := client.Fetch(ctx, keys); !errors.Is(err, c.want) {
			t.Errorf("%s: fetch: %v", c.desc, err)
		}
		if err := client.Push(ctx, keys, make([]float32, len(keys)*c.dim)); !errors.Is(err, c.want) {
			t.Errorf("%s: push: %v", c.desc, err)
		}
		client.Close()
	}
}

func TestRefusals(t *testing.T) { eachTransport(t, testRefusals) }

func testRefusals(t *testing.T, tr transport) {
	ctx := context.Background()
	shards, c := tr.start(t, 1, ps.Config{Dim: 2, LearningRate: 1, MaxRows: 3, MaxKeys: 5})
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		if err := c.Push(ctx, []uint64{1, 2}, []float32{1, 1, 1, bad}); !errors.Is(err, archon.InvalidArgument) {
			t.Errorf("push of %v: %v", bad, err)
		}
	}
	if err := c.Push(ctx, []uint64{1}, []float32{1}); !errors.Is(err, archon.InvalidArgument) {
		t.Errorf("push of too few values: %v", err)
	}
	if _, err := c.Fetch(ctx, keyRange(6)); !errors.Is(err, archon.InvalidArgument) {
		t.Errorf("fetch of too many keys: %v", err)
	}
	if err := c.Push(ctx, keyRange(4), make([]float32, 8)); !errors.Is(err, archon.ResourceExhausted) {
		t.Errorf("push to too many rows: %v", err)
	}
	f, err := c.Fetch(ctx, []uint64{0, 1, 2, 3}) // takes no memory, and saw no refused push
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if r := f.Row(i); r[0] != 0 || r[1] != 0 {
			t.Errorf("row %d is %v after refused pushes", i, r)
		}
	}
	f.Release()
	if n := shards[0].Rows(); n > 3 {
		t.Errorf("%d rows, at most 3 may be", n)
	}
	if err := shards[0].Create(keyRange(10)); !errors.Is(err, archon.ResourceExhausted) {
		t.Errorf("create: %v", err)
	}
	if f, err := c.Fetch(ctx, nil); err != nil {
		t.Errorf("fetch of nothing: %v", err)
	} else {
		f.Release()
	}
	if err := c.Push(ctx, nil, nil); err != nil {
		t.Errorf("push of nothing: %v", err)
	}
}

func TestBadConfigs(t *testing.T) {
	nan := float32(math.NaN())
	for _, cfg := range []ps.Config{
		{}, {Dim: -1}, {Dim: 1<<16 + 1}, {Dim: 1, Shard: 1}, {Dim: 1, Shard: -1, Shards: 2}, {Dim: 1, Shards: -1}, {Dim: 1, MaxRows: -1},
		{Dim: 1, MaxKeys: -1}, {Dim: 1, LearningRate: nan}, {Dim: 1, InitialScale: float32(math.Inf(1))},
	} {
		if _, err := ps.NewShard(cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
	if _, err := ps.NewClient(0, nil); err == nil {
		t.Error("a client of rows without values")
	}
	if _, err := ps.NewClient(1, nil); err == nil {
		t.Error("a client without shards")
	}
}

func TestDeadlinesAndCloses(t *testing.T) { eachTransport(t, testDeadlinesAndCloses) }

func testDeadlinesAndCloses(t *testing.T, tr transport) {
	_, c := tr.start(t, 2, ps.Config{Dim: 2})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Fetch(ctx, keyRange(3)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled fetch: %v", err)
	}
	ctx, cancel = context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer cancel()
	if err := c.Push(ctx, keyRange(1), make([]float32, 2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("late push: %v", err)
	}
	f := &ps.FetchCall{Keys: keyRange(10), Timeout: -1}
	ended := make(chan error, 1)
	c.GoFetch(f, func(f *ps.FetchCall) { ended <- f.Err })
	if err := <-ended; !errors.Is(err, archon.DeadlineExceeded) {
		t.Errorf("fetch with no time: %v", err)
	}
	c.Close()
	if _, err := c.Fetch(context.Background(), keyRange(3)); !errors.Is(err, archon.Unavailable) {
		t.Errorf("fetch of a closed client: %v", err)
	}
}
