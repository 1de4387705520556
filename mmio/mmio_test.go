//go:build unix

package mmio

import (
	"bytes"
	"os"
	"testing"
)

func mustMap(t *testing.T, n int) *Mapping {
	t.Helper()
	m, err := Anonymous(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestStores(t *testing.T) {
	m := mustMap(t, 4096)
	Doorbell(m.Uint32(20), BE32(0x15161718), m.Uint64(8), BE64(0x0102030405060708))
	StoreBE32(m.Uint32(16), 0x11121314)
	WriteBarrier()
	ReadBarrier()
	want := []byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}
	if got := m.Bytes()[:24]; !bytes.Equal(got, want) {
		t.Errorf("bytes are % x, want % x", got, want)
	}
	Doorbell(m.Uint32(36), 41, m.Uint64(8), 42)
	if got := *m.Uint64(8); got != 42 || *m.Uint32(36) != 41 {
		t.Errorf("Doorbell left %d, %d", got, *m.Uint32(36))
	}
	Release32(m.Uint32(32), 43)
	if got := *m.Uint32(32); got != 43 {
		t.Errorf("Release32 left %d", got)
	}
	blocks := m.Bytes()[1024:][:192]
	for i := range blocks {
		blocks[i] = byte(i)
	}
	DoorbellBlocks(m.Uint32(40), 44, m.Uint64(2048), blocks)
	if got := m.Bytes()[2048:][:256]; *m.Uint32(40) != 44 || !bytes.Equal(got[:192], blocks) || !bytes.Equal(got[192:], make([]byte, 64)) {
		t.Errorf("blocks are % x", got)
	}
	StoreUint32(m.Uint32(4), 7)
	if got := LoadUint32(m.Uint32(4)); got != 7 {
		t.Errorf("word is %d", got)
	}
}

func TestMapFile(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(8192); err != nil {
		t.Fatal(err)
	}
	before := Live()
	m, err := Map(int(f.Fd()), 4096, 4096)
	if err != nil {
		t.Fatal(err)
	}
	StoreUint32(m.Uint32(0), 0x01010101)
	if Live() != before+1 {
		t.Errorf("%d mappings live, want %d", Live(), before+1)
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if Live() != before {
		t.Errorf("%d mappings live after close, want %d", Live(), before)
	}
	b := make([]byte, 4)
	if _, err := f.ReadAt(b, 4096); err != nil || !bytes.Equal(b, []byte{1, 1, 1, 1}) {
		t.Errorf("file has % x, %v", b, err)
	}
	if _, err := Map(int(f.Fd()), 1, 4096); err == nil {
		t.Error("mapping at an unaligned offset worked")
	}
}

func TestPointerChecks(t *testing.T) {
	m := mustMap(t, 4096)
	for _, off := range []int{-4, 2, 4094, 4096} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Uint32(%d) did not panic", off)
				}
			}()
			m.Uint32(off)
		}()
	}
}

func TestRing(t *testing.T) {
	for _, tt := range []struct {
		mask  Mask
		valid bool
	}{{0, false}, {1, true}, {2, false}, {7, true}, {31, true}, {1<<32 - 1, true}, {5, false}} {
		if got := tt.mask.Valid(); got != tt.valid {
			t.Errorf("Mask(%d).Valid() = %v", tt.mask, got)
		}
	}
	m := Mask(7)
	p, c := Index(6), Index(6)
	for i := range m.Capacity() {
		if m.Len(p, c) != i || m.Full(p, c) {
			t.Fatalf("after %d: len %d, full %v", i, m.Len(p, c), m.Full(p, c))
		}
		p = m.Next(p)
	}
	if !m.Full(p, c) || m.Len(p, c) != 7 || m.Slots() != 8 {
		t.Errorf("len %d, full %v, slots %d", m.Len(p, c), m.Full(p, c), m.Slots())
	}
	if m.Wrap(0xffffffff) != 7 {
		t.Error("Wrap left the ring")
	}
}

func BenchmarkDoorbell(b *testing.B) {
	m, err := Anonymous(4096)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	p := m.Uint64(0)
	for b.Loop() {
		Doorbell(m.Uint32(8), 1, p, 1)
	}
}

func BenchmarkWriteBarrier(b *testing.B) {
	for b.Loop() {
		WriteBarrier()
	}
}
