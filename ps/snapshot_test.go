package ps

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// restored gives a shard that is made of a snapshot of s.
func restored(t testing.TB, s *Shard, cfg Config) *Shard {
	t.Helper()
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	again := newTestShard(t, cfg)
	if err := again.Restore(&b); err != nil {
		t.Fatal(err)
	}
	return again
}

func filled(t testing.TB, cfg Config, pushes uint64) *Shard {
	s := newTestShard(t, cfg)
	for i := range pushes {
		if err := s.push(testPush(requestID{ClientID{1 + i%3, 5}, 1 + 2*(i/3)}, i%100)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestSnapshotFile(t *testing.T) {
	for _, optimizer := range []Optimizer{SGD, Adagrad} {
		cfg := Config{Optimizer: optimizer, InitialScale: 0.5, Seed: 3}
		s := filled(t, cfg, 150)
		path := filepath.Join(t.TempDir(), "shard")
		if err := s.SaveFile(path); err != nil {
			t.Fatal(err)
		}
		again := newTestShard(t, cfg)
		if err := again.RestoreFile(path); err != nil {
			t.Fatal(err)
		}
		if again.Rows() != s.Rows() {
			t.Errorf("%d rows, must be %d", again.Rows(), s.Rows())
		}
		for key := range uint64(100) {
			hash := Hash(key)
			if a, b := again.table.slot(again.table.find(key, hash)), s.table.slot(s.table.find(key, hash)); !sameBits(a, b) || again.Version(key) != s.Version(key) {
				t.Errorf("key %d: %v version %d, must be %v version %d", key, a, again.Version(key), b, s.Version(key))
			}
		}
		before := again.sum(100)
		if err := again.push(testPush(requestID{ClientID{1, 5}, 1}, 0)); err != nil || again.sum(100) != before {
			t.Errorf("a push from before the snapshot: %v, sum %v then %v", err, before, again.sum(100))
		}
		if err := again.push(testPush(requestID{ClientID{1, 5}, 2}, 0)); err != nil || again.sum(100) == before {
			t.Errorf("a new push: %v", err)
		}
	}
}

// TestBadSnapshots: every truncation, and every byte that is changed, is refused with
// where and what to do, and the shard stays as it was.
func TestBadSnapshots(t *testing.T) {
	s := filled(t, Config{}, 50)
	path := filepath.Join(t.TempDir(), "shard")
	if err := s.SaveFile(path); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := filled(t, Config{}, 7)
	want := other.sum(100)
	check := func(what string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		err := other.RestoreFile(path)
		e, ok := errors.AsType[*SnapshotError](err)
		if !ok || e.Path != path || e.Offset > int64(len(b)) || !strings.Contains(err.Error(), "restore an older snapshot") {
			t.Fatalf("%s: %v", what, err)
		}
		if got := other.sum(100); got != want {
			t.Fatalf("%s: sum %v, was %v", what, got, want)
		}
	}
	for n := 0; n < len(whole); n += 1 + n/25 {
		check("truncated", whole[:n])
		b := bytes.Clone(whole)
		b[n] ^= 1 << (n % 8)
		check("changed", b)
	}
	for _, cfg := range []Config{{Seed: 1}, {Shards: 2}, {Optimizer: Adagrad}, {InitialScale: 1}} {
		if err := newTestShard(t, cfg).Restore(bytes.NewReader(whole)); err == nil || !strings.Contains(err.Error(), "another table") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// fullDisk takes some bytes.
type fullDisk struct {
	to   io.Writer
	room int
}

func (d *fullDisk) Write(b []byte) (int, error) {
	if len(b) > d.room {
		n, _ := d.to.Write(b[:d.room])
		d.room = 0
		return n, syscall.ENOSPC
	}
	d.room -= len(b)
	return d.to.Write(b)
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "shard")
	if err := filled(t, Config{}, 9).SaveFile(path); err != nil {
		t.Fatal(err)
	}
	err := filled(t, Config{}, 100).saveFile(path, func(f *os.File) io.Writer { return &fullDisk{f, 100} })
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("save: %v", err)
	}
	s := newTestShard(t, Config{})
	if err := s.RestoreFile(path); err != nil || s.Rows() != 9 {
		t.Errorf("the old file: %v, %d rows", err, s.Rows())
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left in the directory: %v", left)
	}
}

// TestSnapshotUnderLoad: a snapshot is of one moment, though pushes go on. Each push
// changes two rows by the same.
func TestSnapshotUnderLoad(t *testing.T) {
	s := newTestShard(t, Config{})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			b := make([]byte, pushHeader+2*8+2*4)
			putRequestHeader(b, 2, 1, 0, 1)
			b[pushHeader] = 1
			putFloat(b[pushHeader+16:], 0, -1)
			putFloat(b[pushHeader+16:], 1, -1)
			if err := s.push(b); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 200 {
		again := restored(t, s, Config{})
		if a, b := again.sum(1), again.sum(2)-again.sum(1); a != b {
			t.Fatalf("rows %v and %v", a, b)
		}
	}
	close(stop)
	wg.Wait()
}

func TestLoad(t *testing.T) {
	s := newTestShard(t, Config{Shards: 2})
	n, err := s.Load(func(yield func(uint64, []float32) bool) {
		for key := range uint64(100) {
			if !yield(key, []float32{float32(key)}) {
				return
			}
		}
	})
	if err != nil || n == 0 || n == 100 || n != s.Rows() {
		t.Errorf("%d rows loaded, %d there: %v", n, s.Rows(), err)
	}
	for key := range uint64(100) {
		if n := s.table.find(key, Hash(key)); n != 0 && s.table.row(n)[0] != float32(key) {
			t.Errorf("row %d is %v", key, s.table.row(n))
		}
	}
	if _, err := s.Load(func(yield func(uint64, []float32) bool) { yield(0, nil) }); ShardOf(0, 2) == 0 && err == nil {
		t.Error("a row without values was loaded")
	}
}

// FuzzRestore: no bytes make Restore panic, and what is taken is written the same again.
func FuzzRestore(f *testing.F) {
	s := filled(f, Config{}, 20)
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), uint64(0))
	f.Add(b.Bytes()[:b.Len()-5], uint64(1))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		if len(b) > 40 && seed != 0 { // pass the checksum of a block that was changed
			b = bytes.Clone(b)
			resum(b, rng)
		}
		cfg := Config{MaxRows: 64}
		s := newTestShard(t, cfg)
		if s.Restore(bytes.NewReader(b)) != nil {
			return
		}
		again := restored(t, s, cfg)
		if again.Rows() != s.Rows() || len(again.clients.byID) != len(s.clients.byID) {
			t.Errorf("%d rows and %d clients, then %d and %d", s.Rows(), len(s.clients.byID), again.Rows(), len(again.clients.byID))
		}
	})
}

// resum changes a byte and makes the checksums right again.
func resum(b []byte, rng *rand.Rand) {
	b[8+rng.IntN(len(b)-8)] ^= 1 << rng.IntN(8)
	for rest := b[8:]; len(rest) >= blockOverhead; {
		n := int(rest[0]) | int(rest[1])<<8 | int(rest[2])<<16 | int(rest[3])<<24
		if n < 0 || n+blockOverhead > len(rest) {
			return
		}
		sealed := sealBlock(rest[: 8+n : 8+n])
		copy(rest, sealed)
		rest = rest[n+blockOverhead:]
	}
}
