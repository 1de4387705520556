package ps

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"slices"

	"github.com/pkg/errors"
)

// A snapshot is a magic of 8 bytes and blocks, all little-endian:
//
//	0  u32  length of the payload
//	4  u32  kind of the block
//	8  payload
//	   u32  CRC-32C of all before in the block
//
// The first block says of what table it is, then come the map, if there is one, rows and
// clients in any number of blocks, and the end, with their counts. Rows: key, version, then the values and
// Adagrad's sums as float32. Clients: birth, nonce, floor and number of spans, then
// the spans.
const (
	snapshotMagic = "BEPSSN01"

	blockTable   = 1
	blockRows    = 2
	blockClients = 3
	blockEnd     = 4
	blockMap     = 5

	blockOverhead = 12      // bytes around a payload
	blockBytes    = 1 << 18 // about how long a payload of many rows is
	maxBlockBytes = blockBytes + 16 + 8*maxDim

	tableBytes  = 32
	endBytes    = 16
	clientBytes = 32
	rowHead     = 16 // key and version
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// image is a shard at one moment. Its rows are borrowed: pushes go on, to other places.
type image struct {
	cfg     Config
	own     ownership
	table   *table
	chunks  []chunk
	keys    []uint64
	rows    []uint32
	version []uint64
	horizon uint64
	clients []window // by use, the last used last
}

// image takes the shard's image, which is to be released, with the rows that are brought
// to it by a map; nil: none. The caller holds mu.
func (s *Shard) image(brought *Map) *image {
	t := s.table
	m := &image{cfg: s.cfg, own: s.own, table: t, chunks: slices.Clone(t.chunks), horizon: s.clients.horizon}
	m.keys, m.rows, m.version = make([]uint64, 0, t.rows), make([]uint32, 0, t.rows), make([]uint64, 0, t.rows)
	t.loans.begin()
	for _, e := range t.index {
		if e.row == 0 {
			continue
		}
		if hash := Hash(e.key); s.own.mine(e.key, hash) || brought != nil && brought.owner(e.key, hash) == s.own.shard {
			t.lent(e.row).Add(1)
			m.keys, m.rows, m.version = append(m.keys, e.key), append(m.rows, e.row), append(m.version, *t.version(e.row))
		}
	}
	m.clients = make([]window, 0, len(s.clients.byID))
	for w := s.clients.used.prev; w != &s.clients.used; w = w.prev {
		m.clients = append(m.clients, window{id: w.id, floor: w.floor, spans: slices.Clone(w.spans)})
	}
	return m
}

// release gives the rows back.
func (m *image) release() {
	for _, n := range m.rows {
		c := &m.chunks[(n-1)>>m.table.chunkShift].lent[(n-1)&(1<<m.table.chunkShift-1)]
		m.table.giveBack(n, c)
	}
	m.table.loans.end()
}

// slot gives the values of a row and its optimizer.
func (m *image) slot(n uint32) []float32 {
	n--
	from := int(n&(1<<m.table.chunkShift-1)) * m.table.stride
	return m.chunks[n>>m.table.chunkShift].values[from : from+m.table.stride]
}

// Snapshot writes the rows of the shard and what it remembers of its clients, as they are
// at one moment, to w. Pushes go on meanwhile, but those to rows that are being written
// take memory again.
func (s *Shard) Snapshot(w io.Writer) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	m := s.image(nil)
	s.mu.Unlock()
	defer m.release()
	return m.write(w)
}

// write writes the image.
func (m *image) write(w io.Writer) error {
	if _, err := io.WriteString(w, snapshotMagic); err != nil {
		return errors.Wrap(err, "ps: write a snapshot")
	}
	b := newBlock(blockTable)
	b = binary.LittleEndian.AppendUint32(b, uint32(m.cfg.Dim))
	b = binary.LittleEndian.AppendUint32(b, uint32(m.cfg.Optimizer))
	b = binary.LittleEndian.AppendUint32(b, uint32(m.cfg.Shard))
	b = binary.LittleEndian.AppendUint32(b, uint32(m.cfg.Shards))
	b = binary.LittleEndian.AppendUint64(b, m.cfg.Seed)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(m.cfg.InitialScale))
	b = binary.LittleEndian.AppendUint32(b, 0)
	flush := func(kind uint32) error {
		_, err := w.Write(sealBlock(b))
		b = append(b[:0], newBlock(kind)...)
		return errors.Wrap(err, "ps: write a snapshot")
	}
	if err := flush(blockMap); err != nil {
		return err
	}
	if err := m.own.mapBlocks(func(payload []byte) error {
		b = append(b, payload...)
		return flush(blockMap)
	}); err != nil {
		return err
	}
	b = append(b[:0], newBlock(blockRows)...)
	for i, n := range m.rows {
		b = appendRow(b, m.keys[i], m.version[i], m.slot(n))
		if len(b) >= blockBytes {
			if err := flush(blockRows); err != nil {
				return err
			}
		}
	}
	if err := flush(blockClients); err != nil {
		return err
	}
	b = binary.LittleEndian.AppendUint64(b, m.horizon)
	for i := range m.clients {
		b = appendWindow(b, &m.clients[i])
		if len(b) >= blockBytes {
			if err := flush(blockClients); err != nil {
				return err
			}
			b = binary.LittleEndian.AppendUint64(b, m.horizon)
		}
	}
	if err := flush(blockEnd); err != nil {
		return err
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(len(m.rows)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(m.clients)))
	return flush(blockEnd)
}

// appendRow appends a row and its optimizer's values.
func appendRow(b []byte, key, version uint64, values []float32) []byte {
	b = binary.LittleEndian.AppendUint64(b, key)
	b = binary.LittleEndian.AppendUint64(b, version)
	at := len(b)
	b = append(b, make([]byte, 4*len(values))...)
	putFloats(b[at:], values)
	return b
}

func newBlock(kind uint32) []byte {
	return binary.LittleEndian.AppendUint32(make([]byte, 4, 64), kind)
}

// sealBlock completes a block.
func sealBlock(b []byte) []byte {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-8))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func appendWindow(b []byte, w *window) []byte {
	b = binary.LittleEndian.AppendUint64(b, w.id.Birth)
	b = binary.LittleEndian.AppendUint64(b, w.id.Nonce)
	b = binary.LittleEndian.AppendUint64(b, w.floor)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(w.spans)))
	for _, s := range w.spans {
		b = binary.LittleEndian.AppendUint64(b, s.first)
		b = binary.LittleEndian.AppendUint64(b, s.last)
	}
	return b
}
