package ps

import (
	"encoding/binary"
	"fmt"
	"testing"
)

func BenchmarkGather(b *testing.B) {
	for _, rows := range []int{1 << 14, 1 << 18} {
		for _, dim := range []int{16, 64} {
			b.Run(fmt.Sprintf("rows=%d/dim=%d/keys=4096", rows, dim), func(b *testing.B) { benchmarkGather(b, rows, dim, 4096) })
		}
	}
}

func benchmarkGather(b *testing.B, rows, dim, n int) {
	s, err := NewShard(Config{Dim: dim})
	if err != nil {
		b.Fatal(err)
	}
	all := make([]uint64, rows)
	for i := range all {
		all[i] = uint64(i)
	}
	if err := s.Create(all); err != nil {
		b.Fatal(err)
	}
	const requests = 16
	var reqs [requests]request
	for r := range reqs {
		keys := make([]byte, 8*n)
		for i := range n {
			binary.LittleEndian.PutUint64(keys[8*i:], Hash(uint64(r*n+i))%uint64(rows))
		}
		reqs[r] = request{count: n, keys: keys, shards: 1}
	}
	out := make([]byte, 4*dim*n)
	b.SetBytes(int64(len(out)))
	next := 0
	for b.Loop() {
		if err := s.gather(reqs[next%requests], out); err != nil {
			b.Fatal(err)
		}
		next++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
}
