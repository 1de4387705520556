package be

import (
	stderrors "errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/mr"
)

// domain is a key domain of a node: a pool of memory that is registered with the same
// rights. A key opens a whole block of its pool, so what peers may reach lies apart
// from what they may not.
type domain int

const (
	localDomain    domain = iota // messages to be sent, and receives that are held ready: no peer has a key
	writableDomain               // where peers write large messages
	readableDomain               // from where peers read them, in get mode
	numDomains
)

// domainAccess is what each is registered for. The readable one is for this node's
// device to write too: a kernel may pin pages that nobody is to write without making
// them this process's own first.
var domainAccess = [numDomains]mr.Access{
	localDomain:    mr.LocalWrite,
	writableDomain: mr.LocalWrite | mr.RemoteWrite,
	readableDomain: mr.LocalWrite | mr.RemoteRead,
}

var domainNames = [numDomains]string{"local", "writable", "readable"} // for errors

// memory is the node's pools as engines see them. But for the local one they are
// made when first used. It remembers when there was nothing left, so that the next
// Free tells the workers.
type memory struct {
	cfg    bemalloc.Config // of every pool, but for Access
	local  *bemalloc.Pool  // the first of pools
	owners *owners         // nil: nobody asks who owns a buffer
	pools  [numDomains]atomic.Pointer[bemalloc.Pool]
	opened sync.Mutex // to make one
	closed bool       // no more; under opened

	preparing preparing

	offered atomic.Int64 // longer buffers of the application's are from the readable pool
	short   atomic.Bool
	poke    func()
	damage  atomic.Pointer[bemalloc.CorruptError] // the first that a Free found
}

// newMemory makes the local pool of a node. Config.PoolBytes bounds all pools together.
func newMemory(r mr.Registrar, cfg *Config, maxRegion int64, poke func()) (*memory, error) {
	m := &memory{cfg: bemalloc.Config{Registrar: r, MaxRegionBytes: maxRegion, Budget: bemalloc.NewBudget(cfg.PoolBytes), Debug: cfg.Debug}, poke: poke}
	m.offered.Store(math.MaxInt64)
	m.preparing.stop = make(chan struct{})
	var err error
	if m.local, err = m.pool(localDomain); err == nil {
		m.owners = newOwners(m.local)
	}
	return m, err
}

// pool gives the pool of a domain.
func (m *memory) pool(d domain) (*bemalloc.Pool, error) {
	if p := m.pools[d].Load(); p != nil {
		return p, nil
	}
	m.opened.Lock()
	defer m.opened.Unlock()
	if p := m.pools[d].Load(); p != nil {
		return p, nil
	}
	if m.closed {
		return nil, bemalloc.ErrClosed
	}
	cfg := m.cfg
	cfg.Access = domainAccess[d]
	p, err := bemalloc.New(cfg)
	if err != nil {
		return nil, err
	}
	m.pools[d].Store(p)
	return p, nil
}

// of gives the pool that a buffer is from; the local one for memory of somebody else.
func (m *memory) of(b []byte) *bemalloc.Pool {
	if m.local.Covers(b) {
		return m.local
	}
	return m.elsewhere(b)
}

func (m *memory) elsewhere(b []byte) *bemalloc.Pool {
	for d := localDomain + 1; d < numDomains; d++ {
		if p := m.pools[d].Load(); p != nil && p.Covers(b) {
			return p
		}
	}
	return m.local
}

// alloc gives n bytes of a domain.
func (m *memory) alloc(d domain, n int) ([]byte, error) {
	p, err := m.pool(d)
	if err != nil {
		return nil, err
	}
	return p.Alloc(n)
}

// Alloc gives an engine n bytes of the local domain.
func (m *memory) Alloc(n int) ([]byte, error) {
	b, err := m.allocate(localDomain, n)
	if err != nil {
		m.ranShort(err)
	}
	m.owners.born(b)
	return b, err
}

// allocate is alloc for who must not wait.
func (m *memory) allocate(d domain, n int) ([]byte, error) {
	if n > bemalloc.BlockBytes {
		return m.allocLong(d, n)
	}
	if d == localDomain {
		return m.local.Alloc(n)
	}
	return m.alloc(d, n)
}

// AllocWritable gives an engine n bytes for a peer to write to, and the key for that.
func (m *memory) AllocWritable(n int) ([]byte, mr.RKey, error) {
	b, err := m.allocate(writableDomain, n)
	if err != nil {
		m.ranShort(err)
		return nil, 0, err
	}
	m.owners.born(b)
	r, err := m.pools[writableDomain].Load().MR(b)
	return b, r.RKey, err
}

// ranShort notes that an engine got no memory: the next Free tells the workers.
func (m *memory) ranShort(err error) {
	m.noteDamage(err)
	m.short.Store(true)
}

// allocMessage gives the application n bytes to send: that peers may read, if messages
// of that length are offered to any and there is such memory.
func (m *memory) allocMessage(n int) ([]byte, error) {
	if int64(n) > m.offered.Load() {
		if b, err := m.alloc(readableDomain, n); err == nil {
			m.owners.born(b)
			return b, nil
		}
	}
	b, err := m.local.Alloc(n)
	m.owners.born(b)
	return b, err
}

// offer says that messages of more than n bytes are offered to a peer from now on.
func (m *memory) offer(n int) {
	for have := m.offered.Load(); int64(n) < have && !m.offered.CompareAndSwap(have, int64(n)); have = m.offered.Load() {
	}
}

// Free gives a buffer back. Its pool counts what is wrong with it, and the first
// damage is kept for Close to report.
func (m *memory) Free(b []byte) {
	m.owners.dead(b)
	if err := m.of(b).Free(b); err != nil {
		m.noteDamage(err)
	}
	if m.short.Load() && m.short.Swap(false) {
		m.poke()
	}
}

// noteDamage keeps err if it is the first that tells of damaged memory.
func (m *memory) noteDamage(err error) {
	var damage *bemalloc.CorruptError
	if errors.As(err, &damage) {
		m.damage.CompareAndSwap(nil, damage)
	}
}

// damaged gives the damage that was found, as an error, or what the application did to a
// buffer that was not its own.
func (m *memory) damaged() error {
	if d := m.damage.Load(); d != nil {
		return d
	}
	return m.owners.err()
}

// LKey gives the local key of a buffer.
func (m *memory) LKey(b []byte) (mr.LKey, error) {
	if k, err := m.local.LKey(b); err == nil {
		return k, nil
	}
	return m.elsewhere(b).LKey(b)
}

// ReadKey gives the key with which a peer may read a buffer.
func (m *memory) ReadKey(b []byte) (mr.RKey, bool) {
	p := m.pools[readableDomain].Load()
	if p == nil || !p.Covers(b) {
		return 0, false
	}
	r, err := p.MR(b)
	return r.RKey, err == nil
}

// close gives all memory back. What is in use makes it fail, and it may be called again.
func (m *memory) close() error {
	m.preparing.end()
	m.opened.Lock()
	m.closed = true
	m.opened.Unlock()
	var errs []error
	for d := range m.pools {
		if p := m.pools[d].Load(); p != nil {
			errs = append(errs, errors.WithMessage(p.Close(), domainNames[d]))
		}
	}
	return stderrors.Join(errs...)
}

// Registered is a node's registered memory by key domain, in bytes.
type Registered struct {
	Local    int64 // that no peer has a key to
	Writable int64 // where peers write large messages
	Readable int64 // from where peers read them, in get mode
}

// stats adds up the pools.
func (m *memory) stats(s *Stats) {
	for d, bytes := range [numDomains]*int64{&s.Registered.Local, &s.Registered.Writable, &s.Registered.Readable} {
		if p := m.pools[d].Load(); p != nil {
			st := p.Stats()
			s.Memory.Add(&st)
			*bytes = st.RegisteredBytes
		}
	}
}
