package ps

import (
	"crypto/rand"
	"encoding/binary"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/be"
	"github.com/pkg/errors"
)

// TensorsConfig sets Tensors up. The zero value works.
type TensorsConfig struct {
	// Node is the node whose peers READ the tensors; nil: they are sent as answers to calls
	// alone. It is closed after the Tensors.
	Node *be.Node
	// Keep is how long an edition that was replaced stays readable: longer than any
	// reader takes to notice, half of it at most, and to read a tensor. 0: 30 s.
	Keep time.Duration
}

// Tensors are a server's static tensors: bytes by name that do not change, but for being
// replaced as a whole. Their readers are Tensor values of clients. Methods may be called
// from any goroutine.
type Tensors struct {
	cfg    TensorsConfig
	server uint64 // of this start

	mu      sync.RWMutex
	current map[string]*published
	old     map[*published]struct{}
	closed  bool
}

// published is one edition in memory.
type published struct {
	t       *Tensors
	version uint64
	buf     []byte
	exposed *be.Exposed
	place   location
	parts   [][]byte // buf
	refs    atomic.Int32
	release func() // unref, bound once
	timer   *time.Timer
	dropped atomic.Bool
}

// NewTensors makes an empty set.
func NewTensors(cfg TensorsConfig) (*Tensors, error) {
	if cfg.Keep == 0 {
		cfg.Keep = 30 * time.Second
	}
	if cfg.Keep < 0 {
		return nil, errors.Errorf("ps: tensors that are kept for %v, must be positive", cfg.Keep)
	}
	t := &Tensors{cfg: cfg, current: map[string]*published{}, old: map[*published]struct{}{}}
	var b [8]byte
	rand.Read(b[:])
	t.server = binary.LittleEndian.Uint64(b[:])
	return t, nil
}

// Register makes srv answer readers. The handlers run inline.
func (t *Tensors) Register(srv *archon.Server) error {
	if err := srv.HandleInline(MethodTensor, t.handleTensor); err != nil {
		return err
	}
	return srv.HandleInline(MethodTensorPlace, t.handlePlace)
}

// Publish makes a copy of data the edition of a tensor that readers get from now on: who
// begins to read after it gets this one, or a later one. name has 1 to 255 bytes; version is greater than the tensor's
// last, and for readers to tell editions apart, also those of other servers and earlier
// starts. With an error nothing has changed. Editions that were replaced stay in memory
// for TensorsConfig.Keep.
func (t *Tensors) Publish(name string, version uint64, data []byte) error {
	if len(name) == 0 || len(name) > maxTensorName {
		return archon.Errorf(archon.InvalidArgument, "ps: name of %d bytes, must be 1 to %d", len(name), maxTensorName)
	}
	p, err := t.edition(name, version, data)
	if err != nil {
		return errors.WithMessagef(err, "ps: publish version %d of tensor %q, %d bytes", version, name, len(data))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.current[name]
	switch {
	case t.closed:
		err = archon.Errorf(archon.Unavailable, "ps: the tensors are closed")
	case version == 0 || before != nil && before.version >= version:
		last := uint64(0)
		if before != nil {
			last = before.version
		}
		err = archon.Errorf(archon.FailedPrecondition, "ps: version %d of tensor %q, the last is %d: it must be greater", version, name, last)
	}
	if err != nil {
		p.drop()
		return err
	}
	t.current[name] = p
	if before != nil {
		t.retire(before, version+1)
	}
	return nil
}

// Remove takes a tensor away: who begins to read after it gets NotFound. It reports whether
// there was one.
func (t *Tensors) Remove(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.current[name]
	if p != nil {
		delete(t.current, name)
		t.retire(p, 1)
	}
	return p != nil
}

// Close takes all tensors away at once, and their memory, as soon as no response is sent
// from it. The servers that they are registered with are closed before.
func (t *Tensors) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, p := range t.current {
		p.drop()
	}
	for p := range t.old {
		p.timer.Stop()
		p.drop()
	}
	t.current, t.old = map[string]*published{}, map[*published]struct{}{}
	return nil
}

// edition puts data into memory that peers can read.
func (t *Tensors) edition(name string, version uint64, data []byte) (*published, error) {
	p := &published{t: t, version: version}
	size := tensorHeader + len(data)
	if t.cfg.Node == nil {
		p.buf = make([]byte, size)
	} else {
		var err error
		if p.buf, err = t.cfg.Node.Alloc(size); err != nil {
			return nil, &archon.Error{Code: archon.ResourceExhausted, Message: "memory", Cause: err, Retryable: true}
		}
	}
	copy(p.buf[tensorHeader:], data)
	h := edition{name: tensorKey(name), version: version, length: uint64(len(data)), server: t.server, crc: crc32.Checksum(data, castagnoli)}
	h.put(p.buf)
	if t.cfg.Node != nil {
		var err error
		if p.exposed, err = t.cfg.Node.Expose(p.buf); err != nil {
			t.cfg.Node.Free(p.buf)
			return nil, err
		}
		p.place = location{token: p.exposed.Token(), version: version, bytes: uint64(size), keep: t.cfg.Keep}
	}
	p.parts = [][]byte{p.buf}
	p.refs.Store(1)
	p.release = p.unref
	return p, nil
}

// retire tells readers that an edition is not the newest any more, and gives it back later.
// The caller holds mu.
func (t *Tensors) retire(p *published, state uint64) {
	if p.exposed != nil {
		_ = p.exposed.Set(tensorState, state) // within, and aligned
	}
	t.old[p] = struct{}{}
	p.timer = time.AfterFunc(t.cfg.Keep, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.old, p)
		p.drop()
	})
}

// drop gives an edition back when no response is sent from it.
func (p *published) drop() {
	if !p.dropped.Swap(true) {
		p.unref()
	}
}

func (p *published) unref() {
	if p.refs.Add(-1) > 0 || p.t.cfg.Node == nil {
		return
	}
	_ = p.exposed.Close() // a device that refuses keeps the node from being closed, with the reason
	p.t.cfg.Node.Free(p.buf)
}

// find gives the newest edition, which is the caller's until unref.
func (t *Tensors) find(name []byte) (*published, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	p := t.current[string(name)]
	if p == nil {
		if t.closed {
			return nil, archon.Errorf(archon.Unavailable, "the tensors are closed")
		}
		return nil, archon.Errorf(archon.NotFound, "no tensor of that name, of %d bytes", len(name))
	}
	p.refs.Add(1)
	return p, nil
}

func (t *Tensors) handleTensor(call *archon.ServerCall) error {
	p, err := t.find(call.Payload())
	if err != nil {
		return err
	}
	if err := call.Gather(p.parts, p.release); err != nil {
		p.unref()
		return err
	}
	return nil
}

func (t *Tensors) handlePlace(call *archon.ServerCall) error {
	p, err := t.find(call.Payload())
	if err != nil {
		return err
	}
	defer p.unref()
	if p.exposed == nil {
		return archon.Errorf(archon.Unimplemented, "the tensors are in no memory that peers read")
	}
	out, err := call.Alloc(placeBytes)
	if err != nil {
		return err
	}
	p.place.put(out)
	return nil
}
