package ps

import (
	"math"
	"sync"

	"github.com/byteexpress/byteexpress/archon"
)

// Shard is one shard of a table. Its methods may be called from any goroutine.
type Shard struct {
	cfg Config

	mu      sync.RWMutex // held for one request's part: readers fetch, writers push
	own     ownership
	pulls   *pulls // of a change that takes rows away; nil: there is none
	sweep   sweep
	table   *table
	clients *clients
	closed  bool
	replica *Replica // nil: the shard has no replicas
}

// NewShard makes an empty shard.
func NewShard(cfg Config) (*Shard, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Shard{cfg: cfg, own: newOwnership(&cfg), table: newTable(&cfg), clients: newClients(cfg.MaxClients)}, nil
}

// Close gives the memory of the rows back, as soon as no response is sent from it.
// The servers that the shard is registered with are closed before; what they still
// ask for is refused.
func (s *Shard) Close() error {
	s.mu.Lock()
	s.closed = true
	t := s.table
	s.mu.Unlock()
	t.loans.close(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.free()
	})
	return nil
}

// Register makes the shard answer Fetch and Push at srv. The handlers run inline:
// they take time in proportion to the request's length, which the transport and
// MaxKeys bound.
// Those of a replica run on workers, since they may wait for others.
func (s *Shard) Register(srv *archon.Server) error {
	if err := s.registerMap(srv); err != nil {
		return err
	}
	handle, fetch, push := srv.HandleInline, archon.Handler(s.fetch), archon.Handler(s.handlePush)
	if r := s.replica; r != nil {
		w := &waiting{r: r, most: max(srv.Workers()/2, 1)}
		handle, fetch, push = srv.Handle, w.fetch, w.push
		if err := r.registerChange(srv); err != nil {
			return err
		}
	}
	if err := handle(MethodFetch, s.withVersion(fetch)); err != nil {
		return err
	}
	return handle(MethodPush, s.withVersion(push))
}

// Map is the map by which the shard serves now; nil: none. It is not to be changed.
func (s *Shard) Map() *Map {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.own.m
}

// Rows is the number of rows that take memory.
func (s *Shard) Rows() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.rows
}

// Version gives how many gradients the key's row got; 0: none, or there is no such row
// here.
func (s *Shard) Version(key uint64) uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return 0
	}
	n := s.table.find(key, Hash(key))
	if n == 0 {
		return 0
	}
	return *s.table.version(n)
}

// Create makes the rows of those keys that belong to this shard, with their initial
// values, as a first Push would. Serving them then costs a copy alone.
func (s *Shard) Create(keys []uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	for _, key := range keys {
		hash := Hash(key)
		if !s.own.mine(key, hash) {
			continue
		}
		if _, err := s.findOrCreate(key, hash); err != nil {
			return err
		}
	}
	return nil
}

// findOrCreate gives the number of the key's row. The caller holds mu.
func (s *Shard) findOrCreate(key, hash uint64) (uint32, error) {
	if n := s.table.find(key, hash); n != 0 {
		return n, nil
	}
	if s.table.rows >= s.cfg.MaxRows {
		return 0, archon.Errorf(archon.ResourceExhausted, "shard %d holds %d rows, as many as it may: raise MaxRows", s.cfg.Shard, s.table.rows)
	}
	return s.table.create(key, hash)
}

var errClosed = archon.Errorf(archon.FailedPrecondition, "the shard is closed")

// blockKeys is how many keys are looked up before their rows are touched, so that
// the cache misses of the look-ups overlap.
const blockKeys = 64

func (s *Shard) fetch(call *archon.ServerCall) error {
	req, err := parseRequest(call.Payload(), &s.cfg, false)
	if err != nil {
		return err
	}
	size := uint64(req.count) * uint64(s.cfg.Dim) * 4
	if size > math.MaxInt32 {
		return archon.Errorf(archon.InvalidArgument, "rows of %d bytes: ask for fewer keys at once", size)
	}
	if int(size) >= lendBytes && 4*s.cfg.Dim >= lendRowBytes && hostLittleEndian {
		if done, err := s.lend(call, req); done || err != nil {
			return err
		}
	}
	out, err := call.Alloc(int(size))
	if err != nil {
		return err
	}
	return s.gather(req, out)
}

// Shorter rows, and shorter responses, are cheaper copied than sent piece by piece.
const (
	lendRowBytes = 512
	lendBytes    = 8 << 10
)

// takes tells whether a request is taken at all. The caller holds mu.
func (s *Shard) takes(req *request) error {
	if s.closed {
		return errClosed
	}
	return s.own.takes(req)
}

// lend answers with the rows where they lie, unless one of them has no memory yet.
func (s *Shard) lend(call *archon.ServerCall, req request) (done bool, err error) {
	l, err := s.borrow(req)
	if l == nil || err != nil {
		return false, err
	}
	if err = call.Gather(l.parts, l.release); err != nil {
		l.end()
		return false, err
	}
	return true, nil
}

// borrow lends the rows asked for; nil: one of them has no memory yet.
func (s *Shard) borrow(req request) (*loan, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.takes(&req); err != nil {
		return nil, err
	}
	l := newLoan(s.table)
	all, err := s.add(l, req)
	if !all {
		l.end()
		return nil, err
	}
	return l, nil
}

// add adds the rows asked for to a loan. The caller holds mu for reading.
func (s *Shard) add(l *loan, req request) (all bool, err error) {
	var rows [blockKeys]uint32
	for first := 0; first < req.count; first += blockKeys {
		n := min(blockKeys, req.count-first)
		for i := range n {
			key := req.key(first + i)
			hash := Hash(key)
			if err := s.own.serves(key, hash, req.version); err != nil {
				return false, err
			}
			if rows[i] = s.table.find(key, hash); rows[i] == 0 {
				return false, nil
			}
		}
		for _, row := range rows[:n] {
			l.add(row)
		}
	}
	return true, nil
}

// gather copies the rows asked for into out.
func (s *Shard) gather(req request, out []byte) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.takes(&req); err != nil {
		return err
	}
	t, rowBytes := s.table, 4*s.cfg.Dim
	var rows [blockKeys]uint32
	for first := 0; first < req.count; first += blockKeys {
		n := min(blockKeys, req.count-first)
		for i := range n {
			key := req.key(first + i)
			hash := Hash(key)
			if err := s.own.serves(key, hash, req.version); err != nil {
				return err
			}
			rows[i] = t.find(key, hash)
		}
		for i, row := range rows[:n] {
			dst := out[:rowBytes]
			out = out[rowBytes:]
			if row != 0 {
				putFloats(dst, t.row(row))
			} else {
				s.putInitial(dst, req.key(first+i))
			}
		}
	}
	return nil
}

// putInitial writes the values of a row that has no memory yet.
func (s *Shard) putInitial(dst []byte, key uint64) {
	start := initialRow(s.cfg.Seed, key)
	for i := range s.cfg.Dim {
		putFloat(dst, i, start.value(i, s.cfg.InitialScale))
	}
}
