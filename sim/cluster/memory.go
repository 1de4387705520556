package cluster

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

const (
	minClass  = 6       // buffers of 64 bytes
	slabBytes = 1 << 20 // smaller buffers are cut from slabs of up to that size
	firstSlab = 1 << 16 // of a node, which may need little; each next is a quarter of all before
	access    = mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead
)

var errMemory = errors.New("the node's registered memory is used up")

// memory is a node's registered memory: buffers in powers of two. It is a
// core.Memory.
type memory struct {
	host  *fabric.Host
	limit int
	used  int         // bytes of slabs
	slabs []mr.Region // by address
	slab  []byte      // what is left of the newest
	free  [64][][]byte
	given int // buffers that are not free

	// Where WRITEs are not copied, all large buffers are the same memory, that of
	// the cluster.
	bulk     []byte
	bulkKey  mr.Region
	bulkFrom int // bytes; longer buffers are bulk, unless exact
	bulkLive int
	exact    bool
	spread   int        // bytes of it over which they are spread, 0: all begin where it does
	places   des.Stream // by chance
}

// placeBytes is what places of messages are multiples of.
const placeBytes = 4 << 10

// Place draws where a message of so many bytes lies in memory of so many.
func Place(rng *des.Stream, memory, size int) int {
	return int(rng.N(int64(max(memory-size, 0)/placeBytes+1))) * placeBytes
}

func classOf(n int) int { return max(bits.Len(uint(max(n, 1)-1)), minClass) }

// Alloc gives n bytes.
func (m *memory) Alloc(n int) ([]byte, error) {
	if m.bulk != nil && n > m.bulkFrom && !m.exact {
		if n > len(m.bulk) {
			return nil, errors.Wrapf(errMemory, "%d bytes, at most %d", n, len(m.bulk))
		}
		m.bulkLive++
		at := 0
		if m.spread > 0 {
			at = Place(&m.places, m.spread, n)
		}
		return m.bulk[at : at+n], nil
	}
	c := classOf(n)
	if l := m.free[c]; len(l) > 0 {
		b := l[len(l)-1]
		m.free[c] = l[:len(l)-1]
		m.given++
		return b[:n], nil
	}
	size := 1 << c
	if size > len(m.slab) {
		grow := max(size, min(max(m.used/4, firstSlab), slabBytes))
		if m.used+grow > m.limit {
			return nil, errors.Wrapf(errMemory, "%d bytes, %d of %d are in use", n, m.used, m.limit)
		}
		slab := make([]byte, grow)
		key, err := m.host.Register(slab, access)
		if err != nil {
			return nil, err
		}
		m.used += grow
		m.slab = slab
		i, _ := m.find(key.Addr)
		m.slabs = slices.Insert(m.slabs, i, key)
	}
	b := m.slab[:size:size]
	m.slab = m.slab[size:]
	m.given++
	return b[:n], nil
}

// AllocWritable gives n bytes with their key: all memory of a node is one key domain.
func (m *memory) AllocWritable(n int) ([]byte, mr.RKey, error) {
	b, err := m.Alloc(n)
	if err != nil {
		return nil, 0, err
	}
	r, err := m.region(b)
	return b, r.RKey, err
}

// Free gives a buffer back.
func (m *memory) Free(b []byte) {
	b = b[:1]
	if m.isBulk(b) {
		m.bulkLive--
		return
	}
	c := classOf(cap(b)) // nobody takes capacity away
	m.free[c] = append(m.free[c], b[:1<<c])
	m.given--
}

// exactly is a node's memory whose own buffers are never bulk.
type exactly struct{ *memory }

// Alloc gives n bytes.
func (m exactly) Alloc(n int) ([]byte, error) {
	m.exact = true
	defer func() { m.exact = false }()
	return m.memory.Alloc(n)
}

// LKey gives the local key of a buffer.
func (m *memory) LKey(b []byte) (mr.LKey, error) {
	r, err := m.region(b)
	return r.LKey, err
}

func (m *memory) region(b []byte) (mr.Region, error) {
	b = b[:1]
	if m.isBulk(b) {
		return m.bulkKey, nil
	}
	if i, _ := m.find(mr.Addr(b) + 1); i > 0 && m.slabs[i-1].Contains(mr.Addr(b), 1) {
		return m.slabs[i-1], nil
	}
	return mr.Region{}, errors.Errorf("no buffer of the node is at %#x", mr.Addr(b))
}

// find gives the place of the first slab that begins at an address or above.
func (m *memory) find(addr uint64) (i int, exact bool) {
	return slices.BinarySearchFunc(m.slabs, addr, func(r mr.Region, addr uint64) int { return cmp.Compare(r.Addr, addr) })
}

// ReadKey gives the key with which a peer may read a buffer.
func (m *memory) ReadKey(b []byte) (mr.RKey, bool) {
	r, err := m.region(b)
	return r.RKey, err == nil
}

func (m *memory) isBulk(b []byte) bool { return m.bulk != nil && m.bulkKey.Contains(mr.Addr(b), 1) }

// held is how many buffers are not free.
func (m *memory) held() int { return m.given + m.bulkLive }

// quota bounds what a node receives; it is a core.Quota.
type quota struct{ limit, used int }

// Reserve takes n bytes; one message always passes.
func (q *quota) Reserve(n int) bool {
	if q.used > 0 && q.used+n > q.limit {
		return false
	}
	q.used += n
	return true
}

// Release gives n bytes back.
func (q *quota) Release(n int) { q.used -= n }
