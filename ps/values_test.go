package ps

import (
	"bytes"
	"math"
	"testing"
)

func TestHashGolden(t *testing.T) {
	// The first outputs of SplitMix64 seeded with 1234567, which are Hash of the seed
	// plus 1, 2, ... steps (rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64).
	want := []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821}
	for i, w := range want {
		if got := Hash(1234567 + uint64(i+1)*gamma); got != w {
			t.Errorf("output %d: %d, want %d", i, got, w)
		}
	}
}

func TestShardsAreEven(t *testing.T) {
	for _, shards := range []int{1, 2, 3, 7, 64} {
		counts := make([]int, shards)
		const keys = 100_000
		for key := range uint64(keys) {
			counts[ShardOf(key, shards)]++
		}
		for shard, n := range counts {
			if mean := keys / shards; n < mean*9/10-50 || n > mean*11/10+50 {
				t.Errorf("shard %d of %d holds %d of %d keys", shard, shards, n, keys)
			}
		}
	}
}

func TestInitialValues(t *testing.T) {
	const scale = 0.25
	sum, seen := 0.0, map[float32]bool{}
	for key := range uint64(100) {
		for i := range 100 {
			v := InitialValue(7, key, i, scale)
			if v < -scale || v >= scale {
				t.Fatalf("value %d of key %d is %v", i, key, v)
			}
			sum += float64(v)
			seen[v] = true
		}
	}
	if math.Abs(sum/10000) > scale/20 || len(seen) < 9900 {
		t.Errorf("mean %v of %d different values", sum/10000, len(seen))
	}
	if InitialValue(1, 2, 3, 1) == InitialValue(2, 2, 3, 1) || InitialValue(1, 2, 3, 0) != 0 {
		t.Error("the seed or the scale has no effect")
	}
	// Kept from the first version: tables of other machines and releases must agree.
	for i, want := range []uint32{0xbd0ddd28, 0xbcfa27cd, 0xbd3b37db, 0x3be1d873} {
		if got := math.Float32bits(InitialValue(42, 1<<40, i, 0.05)); got != want {
			t.Errorf("value %d: %#08x, want %#08x", i, got, want)
		}
	}
}

func TestFloatsTravelLittleEndian(t *testing.T) {
	values := []float32{1, -2.5, float32(math.Inf(1)), math.MaxFloat32, 1e-45, 0}
	want := []byte{
		0, 0, 0x80, 0x3f,
		0, 0, 0x20, 0xc0,
		0, 0, 0x80, 0x7f,
		0xff, 0xff, 0x7f, 0x7f,
		1, 0, 0, 0,
		0, 0, 0, 0,
	}
	got, swapped := make([]byte, 24), make([]byte, 24)
	putFloats(got, values)
	putFloatsSwapped(swapped, values)
	if !bytes.Equal(got, want) || !bytes.Equal(swapped, want) {
		t.Errorf("put % x and % x, want % x", got, swapped, want)
	}
	for offset := range 4 { // in place when aligned, else a copy
		b := append(make([]byte, offset, 64), want...)[offset:]
		if got := viewFloats(b); !sameBits(got, values) {
			t.Errorf("offset %d: %v", offset, got)
		}
		if got := copyFloats(b); !sameBits(got, values) {
			t.Errorf("offset %d, copied: %v", offset, got)
		}
	}
	b := bytes.Clone(want)
	view := asFloats(b)
	swapInPlace(b, view) // what a big-endian host does; on a little-endian one, nothing changes
	if !sameBits(view, values) {
		t.Errorf("in place: %v", view)
	}
}

func sameBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}
