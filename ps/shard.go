package ps

import (
	"math"
	"sync"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/pkg/errors"
)

// Config sets a Shard up. Dim must be set; the rest works as zero. All shards of one
// table, and its clients, agree on Dim and Shards.
type Config struct {
	Dim          int     // values a row, 1 to 65536
	Shard        int     // which shard this is, from 0
	Shards       int     // shards in all; 0: 1
	LearningRate float32 // of Push; 0: gradients have no effect
	Seed         uint64  // of the initial values
	InitialScale float32 // initial values lie in [-InitialScale, InitialScale); 0: all are 0
	MaxRows      int     // rows that may take memory; 0: 2^32 - 2
	MaxKeys      int     // keys a request; 0: 2^20

	// Memory is where the rows lie. Long rows are then sent from the table itself if
	// the transport can send from that memory, as ByteExpress can from its node's. nil:
	// the Go heap.
	Memory Memory
}

// Memory gives memory for rows. A *be.Node is one.
type Memory interface {
	// Alloc gives size bytes, at least 4-byte aligned, with any contents.
	Alloc(size int) ([]byte, error)
	// Free gives a buffer of Alloc back.
	Free(b []byte)
}

const (
	maxDim         = 1 << 16
	maxRows        = 1<<32 - 2
	defaultMaxKeys = 1 << 20
)

func (cfg Config) withDefaults() (Config, error) {
	if cfg.Shards == 0 {
		cfg.Shards = 1
	}
	if cfg.MaxRows == 0 {
		cfg.MaxRows = min(maxRows, math.MaxInt)
	}
	if cfg.MaxKeys == 0 {
		cfg.MaxKeys = defaultMaxKeys
	}
	rate, scale := float64(cfg.LearningRate), float64(cfg.InitialScale)
	switch {
	case cfg.Dim < 1 || cfg.Dim > maxDim:
		return cfg, errors.Errorf("ps: rows of %d values, must be 1 to %d", cfg.Dim, maxDim)
	case cfg.Shards < 1 || int64(cfg.Shards) > math.MaxUint32 || cfg.Shard < 0 || cfg.Shard >= cfg.Shards:
		return cfg, errors.Errorf("ps: shard %d of %d: shards count from 0", cfg.Shard, cfg.Shards)
	case cfg.MaxRows < 0 || int64(cfg.MaxRows) > maxRows:
		return cfg, errors.Errorf("ps: at most %d rows, must be 0 to %d", cfg.MaxRows, int64(maxRows))
	case cfg.MaxKeys < 0 || int64(cfg.MaxKeys) > math.MaxUint32:
		return cfg, errors.Errorf("ps: at most %d keys a request, must be 0 to %d", cfg.MaxKeys, int64(math.MaxUint32))
	case math.IsNaN(rate) || math.IsInf(rate, 0) || math.IsNaN(scale) || math.IsInf(scale, 0):
		return cfg, errors.Errorf("ps: learning rate %v and initial scale %v must be finite", rate, scale)
	}
	return cfg, nil
}

// Shard is one shard of a table. Its methods may be called from any goroutine.
type Shard struct {
	cfg Config

	mu     sync.RWMutex // held for one request's part: readers fetch, writers push
	table  *table
	closed bool
}

// NewShard makes an empty shard.
func NewShard(cfg Config) (*Shard, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Shard{cfg: cfg, table: newTable(&cfg)}, nil
}

// Close gives the memory of the rows back, as soon as no response is sent from it.
// The servers that the shard is registered with are closed before; what they still
// ask for is refused.
func (s *Shard) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.table.loans.close(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.table.free()
	})
	return nil
}

// Register makes the shard answer Fetch and Push at srv. The handlers run inline:
// they take time in proportion to the request's length, which the transport and
// MaxKeys bound.
func (s *Shard) Register(srv *archon.Server) error {
	if err := srv.HandleInline(MethodFetch, s.handleFetch); err != nil {
		return err
	}
	return srv.HandleInline(MethodPush, s.handlePush)
}

// Rows is the number of rows that take memory.
func (s *Shard) Rows() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.rows
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
		if shardOfHash(hash, s.cfg.Shards) != s.cfg.Shard {
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

func (s *Shard) misplaced(key uint64) error {
	return archon.Errorf(archon.FailedPrecondition, "key %#x belongs to shard %d of %d, this is shard %d",
		key, ShardOf(key, s.cfg.Shards), s.cfg.Shards, s.cfg.Shard)
}

// blockKeys is how many keys are looked up before their rows are touched, so that
// the cache misses of the look-ups overlap.
const blockKeys = 64

func (s *Shard) handleFetch(call *archon.ServerCall) error {
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

// lend answers with the rows where they lie, unless one of them has no memory yet.
func (s *Shard) lend(call *archon.ServerCall, req request) (done bool, err error) {
	l := newLoan(s.table)
	if done, err = s.borrow(l, req); done {
		if err = call.Gather(l.parts, l.release); err == nil {
			return true, nil
		}
	}
	l.end()
	return false, err
}

// borrow adds the rows asked for to a loan.
func (s *Shard) borrow(l *loan, req request) (all bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return false, errClosed
	}
	var rows [blockKeys]uint32
	for first := 0; first < req.count; first += blockKeys {
		n := min(blockKeys, req.count-first)
		for i := range n {
			key := req.key(first + i)
			hash := Hash(key)
			if shardOfHash(hash, s.cfg.Shards) != s.cfg.Shard {
				return false, s.misplaced(key)
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
	if s.closed {
		return errClosed
	}
	t, rowBytes := s.table, 4*s.cfg.Dim
	var rows [blockKeys]uint32
	for first := 0; first < req.count; first += blockKeys {
		n := min(blockKeys, req.count-first)
		for i := range n {
			key := req.key(first + i)
			hash := Hash(key)
			if shardOfHash(hash, s.cfg.Shards) != s.cfg.Shard {
				return s.misplaced(key)
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

func (s *Shard) handlePush(call *archon.ServerCall) error {
	req, err := parseRequest(call.Payload(), &s.cfg, true)
	if err != nil {
		return err
	}
	if i := firstNotFinite(req.gradients); i >= 0 {
		return archon.Errorf(archon.InvalidArgument, "gradient %d of key %#x is %v", i%s.cfg.Dim, req.key(i/s.cfg.Dim), floatAt(req.gradients, i))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	// Rows first: a refusal in between leaves new rows at their initial values, which
	// nobody can tell from rows that are not there, and others as they were.
	for i := range req.count {
		key := req.key(i)
		hash := Hash(key)
		if shardOfHash(hash, s.cfg.Shards) != s.cfg.Shard {
			return s.misplaced(key)
		}
		n, err := s.findOrCreate(key, hash)
		if err == nil {
			err = s.table.makeWritable(key, hash, n)
		}
		if err != nil {
			return err
		}
	}
	gradients := viewFloats(req.gradients)
	for i := range req.count {
		key := req.key(i)
		row := s.table.row(s.table.find(key, Hash(key)))
		step(row, gradients[:len(row)], s.cfg.LearningRate)
		gradients = gradients[len(row):]
	}
	return nil
}

// step applies one gradient to a row of the same length.
func step(row, gradient []float32, rate float32) {
	// The conversions keep the compiler from fusing product and difference. Four at a
	// time take half as long as one.
	for len(row) >= 4 && len(gradient) >= 4 {
		row[0] -= float32(rate * gradient[0])
		row[1] -= float32(rate * gradient[1])
		row[2] -= float32(rate * gradient[2])
		row[3] -= float32(rate * gradient[3])
		row, gradient = row[4:], gradient[4:]
	}
	for i, g := range gradient {
		row[i] -= float32(rate * g)
	}
}
