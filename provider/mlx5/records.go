//go:build linux

package mlx5

import (
	"os"
	"sync"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
)

// recordSpace keeps doorbell records of different queues apart: a cache line, the
// longest of the processors that this package runs on.
const recordSpace = 128

// record is a doorbell record: two big-endian words that the NIC reads.
type record struct {
	m   *mmio.Mapping
	off int
}

func (r record) bytes() []byte      { return r.m.Bytes()[r.off:][:8:8] }
func (r record) addr() uint64       { return mr.Addr(r.bytes()) }
func (r record) word(i int) *uint32 { return r.m.Uint32(r.off + 4*i) }

// records are the doorbell records of a context, in pages that stay until it is closed.
type records struct {
	mu    sync.Mutex
	pages []*mmio.Mapping
	free  []record
}

// take gives a record of zeros.
func (s *records) take() (record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 {
		m, err := mmio.Queue(os.Getpagesize(), false)
		if err != nil {
			return record{}, err
		}
		s.pages = append(s.pages, m)
		for off := 0; off < len(m.Bytes()); off += recordSpace {
			s.free = append(s.free, record{m, off})
		}
	}
	n := len(s.free) - 1
	r := s.free[n]
	s.free = s.free[:n]
	clear(r.bytes())
	return r, nil
}

// give takes a record back that the NIC no longer reads.
func (s *records) give(r record) {
	if r.m == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, r)
}

func (s *records) close() {
	for _, m := range s.pages {
		m.Close()
	}
}
