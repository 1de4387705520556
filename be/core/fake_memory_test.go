package core

import (
	"errors"
	"fmt"

	"github.com/byteexpress/byteexpress/mr"
)

// Remote keys of the fake memory. What has none is reached by no peer.
const (
	writeKey mr.RKey = iota + 2
	readKey
)

// fakeMemory is an arena that both sides' fake devices reach by address.
type fakeMemory struct {
	arena []byte
	base  uint64
	next  int
	free  map[int][]int   // by size class: offsets
	live  map[uint64]int  // address: class
	open  map[uint64]bool // address: peers may write
	fail  bool
	late  int              // bytes for which there will be memory later; 0: there is now
	full  func(n int) bool // whether there are no n bytes; nil: there are
	shut  bool             // peers may read nothing
}

func newFakeMemory(size int) *fakeMemory {
	m := &fakeMemory{arena: make([]byte, size), free: map[int][]int{}, live: map[uint64]int{}, open: map[uint64]bool{}}
	m.base = mr.Addr(m.arena)
	return m
}

var errFull = errors.New("arena is full")

func class(n int) int {
	c := 64
	for c < n {
		c *= 2
	}
	return c
}

func (m *fakeMemory) Alloc(n int) ([]byte, error) {
	if m.late > 0 && n == m.late {
		return nil, ErrComing
	}
	if m.fail || m.full != nil && m.full(n) {
		return nil, errFull
	}
	c := class(n)
	off := m.next
	if l := m.free[c]; len(l) > 0 {
		off = l[len(l)-1]
		m.free[c] = l[:len(l)-1]
	} else if m.next+c > len(m.arena) {
		return nil, errFull
	} else {
		m.next += c
	}
	m.live[m.base+uint64(off)] = c
	return m.arena[off : off+n : off+max(n, 1)], nil // even an empty one has an address
}

func (m *fakeMemory) AllocWritable(n int) ([]byte, mr.RKey, error) {
	b, err := m.Alloc(n)
	if err != nil {
		return nil, 0, err
	}
	return b, m.expose(b), nil
}

// expose lets peers write to a buffer until it is freed, and gives the key.
func (m *fakeMemory) expose(b []byte) mr.RKey {
	m.open[mr.Addr(b)] = true
	return writeKey
}

func (m *fakeMemory) Free(b []byte) {
	addr := mr.Addr(b)
	c, ok := m.live[addr]
	if !ok {
		panic(fmt.Sprintf("free of %#x, which is not allocated", addr))
	}
	delete(m.live, addr)
	delete(m.open, addr)
	off := int(addr - m.base)
	for i := range m.arena[off : off+c] {
		m.arena[off+i] = 0xdd // a late write shows
	}
	m.free[c] = append(m.free[c], off)
}

func (m *fakeMemory) LKey([]byte) (mr.LKey, error) { return 1, nil }

func (m *fakeMemory) ReadKey([]byte) (mr.RKey, bool) { return readKey, !m.shut }

func (m *fakeMemory) at(addr uint64, n uint32) []byte {
	off := addr - m.base
	return m.arena[off : off+uint64(n)]
}

// owns reports whether n bytes lie in one allocated buffer.
func (m *fakeMemory) owns(addr uint64, n uint32) bool {
	_, ok := m.holding(addr, n)
	return ok
}

// writable reports whether that is one to which peers may write.
func (m *fakeMemory) writable(addr uint64, n uint32) bool {
	at, ok := m.holding(addr, n)
	return ok && m.open[at]
}

func (m *fakeMemory) holding(addr uint64, n uint32) (at uint64, ok bool) {
	for at, c := range m.live {
		if addr >= at && addr+uint64(n) <= at+uint64(c) {
			return at, true
		}
	}
	return 0, false
}

// fakeQuota is a quota for one goroutine.
type fakeQuota struct{ limit, used int }

func (q *fakeQuota) Reserve(n int) bool {
	if q.used > 0 && q.used+n > q.limit {
		return false
	}
	q.used += n
	return true
}

func (q *fakeQuota) Release(n int) { q.used -= n }
