package dma

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/byteexpress/byteexpress/mr"
)

// noise gives n random bytes.
func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestCopy: every alignment of both ends, odd lengths, places that are warm and
// cold, and nothing written beside them.
func TestCopy(t *testing.T) {
	const seed, most = 1, long + 300
	r := rand.New(rand.NewPCG(seed, 0))
	from := noise(r, most+64)
	clean := noise(r, most+2*64)
	to := make([]byte, len(clean))
	lengths := []int{0, 1, long - 1, long, long + 1, long + 63, long + 64, most - 64}
	for range 400 {
		n := lengths[r.IntN(len(lengths))]
		s, d := r.IntN(64), 64+r.IntN(64)
		for _, what := range []string{"cold", "warm"} {
			x := new(Engine)
			if what == "warm" && n > 0 {
				x.written(mr.Addr(to[d:]), uint64(n))
			}
			copy(to, clean)
			x.Copy(to[d:d+n], from[s:s+n])
			if !bytes.Equal(to[d:d+n], from[s:s+n]) {
				t.Fatalf("seed %d: %d bytes from offset %d to %d, %s: not what was there", seed, n, s, d, what)
			}
			if !bytes.Equal(to[:d], clean[:d]) || !bytes.Equal(to[d+n:], clean[d+n:]) {
				t.Fatalf("seed %d: %d bytes from offset %d to %d, %s: wrote beside them", seed, n, s, d, what)
			}
		}
	}
}

// TestOverlap: a WRITE within one region may overlap itself, and is then a memmove.
func TestOverlap(t *testing.T) {
	const n = 2 * long
	r := rand.New(rand.NewPCG(2, 0))
	for _, by := range []int{-long, -64, -1, 0, 1, 64, long} {
		got := noise(r, n+2*long)
		want := bytes.Clone(got)
		copy(want[long+by:][:n], want[long:])
		new(Engine).Copy(got[long+by:][:n], got[long:][:n])
		if !bytes.Equal(got, want) {
			t.Errorf("moved by %d: not what memmove makes", by)
		}
	}
}

func TestWritten(t *testing.T) {
	const size = 256 << 10
	e := new(Engine)
	at := func(i int) uint64 { return 1<<40 + uint64(i)*size }
	for i := range 8 {
		if !e.written(at(i), size) {
			t.Errorf("place %d, never written, is warm", i)
		}
	}
	for i := range 8 {
		if e.written(at(i)+size-1, 1) {
			t.Errorf("place %d is cold after %d bytes", i, 8*size)
		}
	}
	for i := 8; i < 8+warmBytes/size; i++ {
		e.written(at(i), size)
	}
	cold := 0
	for i := range 8 {
		if e.written(at(i), size) {
			cold++
		}
	}
	if cold < 6 { // some share an entry with later ones
		t.Errorf("%d of 8 places are cold after %d bytes more", cold, warmBytes)
	}
}

func BenchmarkCopy(b *testing.B) {
	for _, size := range []int{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20} {
		for _, total := range []int{4 << 20, 64 << 20} {
			from, to := make([]byte, total), make([]byte, total)
			clear(from) // the pages are there
			clear(to)
			for _, how := range []string{"copy", "dma"} {
				b.Run(fmt.Sprintf("size=%d/of=%dM/%s", size, total>>20, how), func(b *testing.B) {
					n, at := new(Engine), 0
					b.SetBytes(int64(size))
					for b.Loop() {
						if how == "copy" {
							copy(to[at:at+size], from[at:])
						} else {
							n.Copy(to[at:at+size], from[at:at+size])
						}
						at = (at + size) % total
					}
				})
			}
		}
	}
}
