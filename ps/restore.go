package ps

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math"
	"slices"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/pkg/errors"
)

// SnapshotError is a snapshot that cannot be restored.
type SnapshotError struct {
	Path   string // of the file; empty: it is not from a file
	Offset int64  // of the block that is wrong
	Err    error
}

// Error says where, what and what to do.
func (e *SnapshotError) Error() string {
	name := "snapshot"
	if e.Path != "" {
		name = fmt.Sprintf("snapshot %q", e.Path)
	}
	return fmt.Sprintf("ps: %s: at byte %d: %v: restore an older snapshot, or copy the shard from a replica", name, e.Offset, e.Err)
}

// Unwrap gives what is wrong.
func (e *SnapshotError) Unwrap() error { return e.Err }

// Restore makes the shard what a snapshot says, in place of what it was. After an error,
// a *SnapshotError if the snapshot is at fault, it is as it was. Calls go on meanwhile,
// and see the one or the other.
//
// A shard whose map is older than the snapshot's goes on with the snapshot's. One whose map
// is newer takes the rows that are still its own; if it has keys that were not the shard's
// when the snapshot was made, the snapshot is refused: their rows are elsewhere. While the
// map changes nothing is restored.
func (s *Shard) Restore(r io.Reader) error {
	s.mu.RLock()
	is := s.own
	s.mu.RUnlock()
	d, err := s.read(r, is, nil)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if err = s.restores(is.m); err != nil {
		s.mu.Unlock()
		d.table.free()
		return err
	}
	old := s.table
	s.table, s.clients, s.own, s.sweep = d.table, d.clients, d.own, sweep{}
	s.mu.Unlock()
	old.loans.close(old.free)
	return nil
}

// restores tells whether a snapshot may be restored that was compared with a map. The caller
// holds mu.
func (s *Shard) restores(m *Map) error {
	if err := s.changing(); err != nil {
		return err
	}
	if s.own.m != m {
		return errChanging
	}
	return nil
}

var errChanging = archon.Errorf(archon.Unavailable, "the shard's map is changing: restore or load rows after that")

// changing says why no rows may be set, if so: the shard is closed, or rows are on their way
// to it or from it. The caller holds mu.
func (s *Shard) changing() error {
	switch {
	case s.closed:
		return errClosed
	case s.pulls != nil || s.replica != nil && s.replica.group.stage != nil:
		return errChanging
	}
	return nil
}

// read reads a snapshot into a new table, for a shard that is what is says; of a copy of
// a replica, with what is in its head.
func (s *Shard) read(r io.Reader, is ownership, head *copyHead) (*decoder, error) {
	d := &decoder{r: r, shard: s, is: is, table: newTable(&s.cfg), clients: newClients(s.cfg.MaxClients)}
	d.own.shard = is.shard
	if head != nil {
		d.copied, d.staged = true, head.brought()
	}
	if err := d.read(); err != nil {
		d.table.free()
		var mem *archon.Error
		if errors.As(err, &mem) && mem.Code == archon.ResourceExhausted {
			return nil, err
		}
		return nil, &SnapshotError{Offset: d.offset, Err: err}
	}
	return d, nil
}

// decoder reads a snapshot.
type decoder struct {
	r       io.Reader
	shard   *Shard
	table   *table
	clients *clients
	offset  int64 // of the block that is read
	block   []byte
	nrows   uint64
	ncl     uint64

	is      ownership           // of the shard
	own     ownership           // that it is to have
	text    [2 + maxPast][]byte // of the maps
	settled bool                // own is decided
	copied  bool                // from a replica
	staged  *Map                // by which there are more rows than the replica's own
}

var errTruncated = errors.New("the snapshot ends too early")

func (d *decoder) read() error {
	var magic [len(snapshotMagic)]byte
	if _, err := io.ReadFull(d.r, magic[:]); err != nil {
		return short(err)
	}
	if string(magic[:]) != snapshotMagic {
		return errors.Errorf("it begins with %q, a snapshot with %q", magic[:], snapshotMagic)
	}
	d.offset = int64(len(magic))
	for first := true; ; first = false {
		kind, payload, err := d.next()
		if err != nil {
			return err
		}
		if first != (kind == blockTable) {
			return errors.Errorf("block of kind %d out of place", kind)
		}
		if kind != blockTable && kind != blockMap {
			if err := d.settle(); err != nil {
				return err
			}
		}
		switch kind {
		case blockTable:
			err = d.checkTable(payload)
		case blockMap:
			err = d.mapBlock(payload)
		case blockRows:
			err = d.rows(payload)
		case blockClients:
			err = d.windows(payload)
		case blockEnd:
			return d.end(payload)
		default:
			err = errors.Errorf("block of unknown kind %d", kind)
		}
		if err != nil {
			return err
		}
		d.offset += int64(len(payload) + blockOverhead)
	}
}

func short(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF { //nolint:errorlint // what ReadFull gives
		return errTruncated
	}
	return err
}

// next reads a block.
func (d *decoder) next() (kind uint32, payload []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(d.r, head[:]); err != nil {
		return 0, nil, short(err)
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxBlockBytes {
		return 0, nil, errors.Errorf("block of %d bytes, at most %d", n, maxBlockBytes)
	}
	if cap(d.block) < int(n)+4 {
		d.block = make([]byte, n+4)
	}
	b := d.block[:n+4]
	if _, err := io.ReadFull(d.r, b); err != nil {
		return 0, nil, short(err)
	}
	sum := crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, b[:n])
	if want := binary.LittleEndian.Uint32(b[n:]); sum != want {
		return 0, nil, errors.Errorf("block of %d bytes has checksum %#08x, must be %#08x", n, sum, want)
	}
	return binary.LittleEndian.Uint32(head[4:]), b[:n], nil
}

// checkTable compares the snapshot's table with the shard's.
func (d *decoder) checkTable(b []byte) error {
	if len(b) != tableBytes {
		return errors.Errorf("table of %d bytes, must be %d", len(b), tableBytes)
	}
	cfg := &d.shard.cfg
	d.own.shards = int(binary.LittleEndian.Uint32(b[12:]))
	shards := uint64(cfg.Shards)
	if d.is.m != nil { // they may have become more or fewer
		shards = uint64(d.own.shards)
	}
	u32 := func(at int) uint64 { return uint64(binary.LittleEndian.Uint32(b[at:])) }
	for _, f := range []struct {
		name      string
		got, want uint64
	}{
		{"Dim", u32(0), uint64(cfg.Dim)},
		{"Optimizer", u32(4), uint64(cfg.Optimizer)},
		{"Shard", u32(8), uint64(cfg.Shard)},
		{"Shards", u32(12), shards},
		{"Seed", binary.LittleEndian.Uint64(b[16:]), cfg.Seed},
		{"bits of InitialScale", u32(24), uint64(math.Float32bits(cfg.InitialScale))},
	} {
		if f.got != f.want {
			return errors.Errorf("it is of another table: its %s is %d, the shard's %d", f.name, f.got, f.want)
		}
	}
	return nil
}

func (d *decoder) rows(b []byte) error {
	size := rowHead + 4*d.table.stride
	if len(b)%size != 0 {
		return errors.Errorf("block of %d bytes of rows of %d", len(b), size)
	}
	for ; len(b) > 0; b = b[size:] {
		key := binary.LittleEndian.Uint64(b)
		hash := Hash(key)
		d.nrows++
		if !d.keeps(key, hash) {
			continue
		}
		if d.table.find(key, hash) != 0 {
			return errors.Errorf("key %#x comes twice", key)
		}
		if d.table.rows >= d.shard.cfg.MaxRows {
			return archon.Errorf(archon.ResourceExhausted, "the snapshot has more rows than MaxRows, %d: raise it", d.shard.cfg.MaxRows)
		}
		n, err := d.table.create(key, hash)
		if err != nil {
			return err
		}
		d.table.set(n, b)
	}
	return nil
}

func (d *decoder) windows(b []byte) error {
	if len(b) < 8 {
		return errors.Errorf("block of %d bytes of clients", len(b))
	}
	d.clients.horizon = max(d.clients.horizon, binary.LittleEndian.Uint64(b))
	for b = b[8:]; len(b) > 0; {
		if len(b) < clientBytes {
			return errors.Errorf("client of %d bytes", len(b))
		}
		id := ClientID{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
		floor, n := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
		b = b[clientBytes:]
		if id.Birth == 0 || n > maxSpans || uint64(len(b)) < 16*n || d.clients.byID[id] != nil {
			return errors.Errorf("client %#x with %d spans in %d bytes, or twice", id.Nonce, n, len(b))
		}
		w := d.clients.window(id)
		w.floor = floor
		last := uint64(0)
		for i := range n {
			s := span{binary.LittleEndian.Uint64(b[16*i:]), binary.LittleEndian.Uint64(b[16*i+8:])}
			if s.first == 0 || s.last < s.first || s.last == math.MaxUint64 || i > 0 && s.first <= last+1 {
				return errors.Errorf("client %#x applied %d to %d after %d", id.Nonce, s.first, s.last, last)
			}
			w.spans = append(w.spans, s)
			last = s.last
		}
		b = b[16*n:]
		d.ncl++
	}
	return nil
}

func (d *decoder) end(b []byte) error {
	if len(b) != endBytes {
		return errors.Errorf("end of %d bytes, must be %d", len(b), endBytes)
	}
	rows, n := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if rows != d.nrows || n != d.ncl {
		return errors.Errorf("%d rows and %d clients, must be %d and %d", d.nrows, d.ncl, rows, n)
	}
	return nil
}

// Load sets rows to given values, dim each, with the optimizer's sums at 0: those of
// keys that belong to this shard, and skips the others. It gives the number of rows that
// were set. Each row is set on its own; after an error those before it are. While the map
// changes nothing is set; load at all replicas before or after.
func (s *Shard) Load(rows iter.Seq2[uint64, []float32]) (loaded int, err error) {
	for key, values := range rows {
		mine, err := s.load(key, values)
		if err != nil {
			return loaded, err
		}
		if mine {
			loaded++
		}
	}
	return loaded, nil
}

func (s *Shard) load(key uint64, values []float32) (mine bool, err error) {
	hash := Hash(key)
	if len(values) != s.cfg.Dim {
		return false, archon.Errorf(archon.InvalidArgument, "row %#x of %d values, must be %d", key, len(values), s.cfg.Dim)
	}
	if i := slices.IndexFunc(values, func(v float32) bool { return v-v != 0 }); i >= 0 {
		return false, archon.Errorf(archon.InvalidArgument, "value %d of row %#x is %v", i, key, values[i])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.changing(); err != nil {
		return false, err
	}
	if !s.own.mine(key, hash) {
		return false, nil
	}
	n, err := s.findOrCreate(key, hash)
	if err == nil {
		err = s.table.makeWritable(key, hash, n)
	}
	if err != nil {
		return false, err
	}
	n = s.table.find(key, hash)
	copy(s.table.row(n), values)
	clear(s.table.slot(n)[s.cfg.Dim:])
	return true, nil
}
