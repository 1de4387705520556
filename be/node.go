package be

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/verbs"
)

// errSaid marks an error that the peer was told already.
var errSaid = errors.New("refused")

// Node is one process's ByteExpress instance on one device: its registered
// memory, its workers, its engines and listeners. Its methods may be called from
// any goroutine.
type Node struct {
	ctx      verbs.Context
	cfg      Config
	device   string
	id       incarnation
	start    time.Time
	pd       verbs.PD
	mem      *memory
	quota    *quota
	inbound  *core.Inbound // nil: without WindowTarget
	workers  []*worker
	maxReads int
	sendSGE  int // segments a send request

	badClients atomic.Uint64
	strays     atomic.Uint64

	goodGID atomic.Pointer[verbs.GIDEntry] // with which a queue pair came up

	life context.Context // ends with Close
	end  context.CancelFunc
	wg   sync.WaitGroup // everything that runs but the worker

	mu           sync.Mutex
	closing      bool
	peers        map[lane]*peer
	routes       map[way]route
	flights      map[way]*flight
	rebuilds     map[way]*rebuild
	spreads      map[string]*spread // by address
	listeners    map[uint32]*Listener
	lastListener uint32
	sockets      map[*Socket]struct{}

	closeMu  sync.Mutex // one Close at a time
	released bool
}

// NewNode makes a node on an opened device. The context stays the caller's, to
// close after the node; the node takes its asynchronous events, so a context
// serves one node. Zero fields of cfg take their defaults.
func NewNode(ctx verbs.Context, cfg Config) (*Node, error) {
	anyPort, anyInbound := cfg.Port == 0, cfg.InboundBytes == 0
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, errors.New("be: new node: no device context: open a device first")
	}
	if anyPort {
		if cfg.Port, err = verbs.BestPort(ctx); err != nil {
			return nil, stepOfNode(StepPort, err)
		}
	}
	if ports := ctx.Info().Ports; cfg.Port > ports {
		return nil, &ConfigError{"Port", int64(cfg.Port), fmt.Sprintf("one of %s, 1 to %d", ctx.Info().Name, ports)}
	}
	if err := cfg.checkGID(ctx); err != nil {
		return nil, err
	}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	n := &Node{
		ctx: ctx, cfg: cfg, device: ctx.Info().Name, id: newIncarnation(), start: time.Now(), peers: map[lane]*peer{}, routes: map[way]route{},
		flights: map[way]*flight{}, rebuilds: map[way]*rebuild{}, spreads: map[string]*spread{}, listeners: map[uint32]*Listener{}, sockets: map[*Socket]struct{}{},
	}
	attr, err := ctx.Attr()
	if err != nil {
		return nil, stepOfNode(StepLimits, err)
	}
	n.maxReads = min(attr.MaxReads, attr.MaxDestReads, 16)
	n.sendSGE = max(min(attr.MaxSGE, maxSendSGE), 2)
	if attr.MaxCQE > 0 {
		cfg.CQEntries = min(cfg.CQEntries, attr.MaxCQE)
	}
	if n.pd, err = ctx.AllocPD(); err != nil {
		return nil, stepOfNode(StepDomain, err)
	}
	if n.mem, err = newMemory(n.pd, &cfg, int64(min(attr.MaxMRSize, 1<<62)), n.pokeRetry); err != nil {
		n.pd.Close()
		return nil, stepOfNode(StepMemory, err)
	}
	if cfg.WindowTarget > 0 {
		if p, err := ctx.Port(cfg.Port); anyInbound && err == nil {
			cfg.InboundBytes = core.InboundOf(p.SpeedGbps, cfg.FragmentBytes)
		}
		poke := n.pokeRoom
		if cfg.Workers == 1 {
			poke = nil
		}
		n.inbound = core.NewInbound(cfg.InboundBytes, cfg.FragmentBytes*3/4, cfg.Seed, poke)
	}
	for range cfg.Workers {
		q, err := ctx.CreateCQ(verbs.CQConfig{Entries: cfg.CQEntries})
		if err != nil {
			n.giveBack()
			return nil, stepOfNode(StepCQ, errors.WithMessagef(err, "of worker %d of %d", len(n.workers), cfg.Workers))
		}
		w := newWorker(n, q)
		n.workers = append(n.workers, w)
		if least := w.entriesEach(); least > int64(q.Capacity()) {
			n.giveBack()
			must := fmt.Sprintf("at least %d, for the SendDepth and, without SharedReceives, RecvDepth of one engine", least)
			if most := attr.MaxCQE; most > 0 && least > int64(most) {
				must += fmt.Sprintf(": lower those, %s has at most %d entries", ctx.Info().Name, most)
			}
			return nil, &ConfigError{"CQEntries", int64(cfg.CQEntries), must}
		}
		if err := w.share(&attr); err != nil {
			n.giveBack()
			return nil, err
		}
	}
	n.quota = &quota{limit: cfg.RecvQuotaBytes, poke: n.pokeRetry}
	n.life, n.end = context.WithCancel(context.Background())
	for _, w := range n.workers {
		go w.run()
	}
	n.wg.Add(1)
	go n.watchDevice()
	if err := n.pinWorkers(); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// stepOfNode is the error of a step of NewNode.
func stepOfNode(step string, err error) error {
	return errors.Wrap(&StepError{Step: step, Err: err}, "be: new node")
}

// giveBack undoes NewNode before its workers run.
func (n *Node) giveBack() {
	for _, w := range n.workers {
		w.unshare()
		w.cq.Close()
	}
	n.mem.close()
	n.pd.Close()
}

// Alloc gives a buffer of size bytes that can be sent. It is not zeroed. Its
// owner is the caller until Send or Post takes it, or Free. No peer has a key to it,
// unless it is published (Socket.Publish), or of a length that is offered to peers to
// read (Socket.SetGet). Errors: ErrTooLarge, ErrClosed, bemalloc.ErrLimit when Config.PoolBytes is used up, and a
// *bemalloc.RegisterError when the device takes no more memory.
func (n *Node) Alloc(size int) ([]byte, error) {
	if size > n.cfg.MaxMessage {
		return nil, tooLarge(size, n.cfg.MaxMessage)
	}
	b, err := n.mem.allocMessage(size)
	if err != nil {
		return nil, n.allocError(size, err)
	}
	return b, nil
}

// allocError says in the node's terms why there is no buffer.
func (n *Node) allocError(size int, err error) error {
	what := fmt.Sprintf("be: %s: allocate %d bytes", n.device, size)
	if errors.Is(err, bemalloc.ErrClosed) {
		return errors.WithMessage(ErrClosed, what)
	}
	var limit *bemalloc.LimitError
	if errors.As(err, &limit) {
		l := *limit
		l.What = "be.Config.PoolBytes"
		err = &l
	}
	return errors.WithMessage(err, what)
}

// Free gives back a buffer of Alloc or Recv, whole or a prefix of it, from any
// goroutine; Free(nil) does nothing. It must not be used afterwards. Other memory
// is left alone, and counted in Stats as Memory.BadFrees; so are second Frees, as
// Memory.DoubleFrees, most of which only BEMALLOC_DEBUG=check notices (see package
// bemalloc). Damage that BEMALLOC_DEBUG=guard finds, a *bemalloc.CorruptError, is
// counted as Memory.Corruptions, and Close returns the first. With Config.Debug.Check a
// buffer that is the node's at the moment is left alone too, an [OwnerError].
func (n *Node) Free(b []byte) {
	if n.mem.owners.mayFree(b) {
		n.mem.Free(b)
	}
}

// Device is the device's name.
func (n *Node) Device() string { return n.device }

// watchDevice hands the device's asynchronous events to the workers.
func (n *Node) watchDevice() {
	defer n.wg.Done()
	for {
		ev, err := n.ctx.NextEvent(n.life)
		if err != nil {
			if n.life.Err() == nil {
				n.onWorkers(func(w *worker) { w.deviceLost(err) })
			}
			return
		}
		n.onEvent(ev)
	}
}

// onEvent ends the engines that an event concerns.
func (n *Node) onEvent(ev verbs.Event) {
	switch ev.Type {
	case verbs.EventPortError:
		if ev.Port != n.cfg.Port {
			return
		}
	case verbs.EventDeviceFatal, verbs.EventQPFatal, verbs.EventQPRequestError, verbs.EventQPAccessError, verbs.EventCQError:
	case verbs.EventSRQError:
		n.onWorkers(func(w *worker) { w.sharedFailed(ev.SRQ, errors.Errorf("device event %v", ev)) })
		return
	default:
		return
	}
	cause := errors.Errorf("device event %v", ev)
	if ev.Type == verbs.EventDeviceFatal {
		cause = fmt.Errorf("%w (event %v)", verbs.ErrDeviceLost, ev)
	}
	n.onWorkers(func(w *worker) {
		for _, c := range w.conns {
			if c != nil && (ev.QP == 0 || c.e.QP().Num() == ev.QP) {
				c.e.Fail(w.now, c.peerError(cause))
				w.touch(c)
			}
		}
	})
}

// begin counts something that Close has to wait for, until wg.Done; false when the
// node closes.
func (n *Node) begin() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		return false
	}
	n.wg.Add(1)
	return true
}

func (n *Node) listener(id uint32) *Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listeners[id]
}

func (n *Node) track(s *Socket) {
	n.mu.Lock()
	n.sockets[s] = struct{}{}
	n.mu.Unlock()
}

func (n *Node) untrack(s *Socket) {
	n.mu.Lock()
	delete(n.sockets, s)
	n.mu.Unlock()
}

// untrackClosed is untrack, but for a socket in a mux: that does it when it has told of
// the end, and has a message in its queue until then.
func (n *Node) untrackClosed(s *Socket) {
	n.mu.Lock()
	if s.mux.Load() == nil {
		delete(n.sockets, s)
	}
	n.mu.Unlock()
}

// trackIn brings a socket, which may be closed, to a mux.
func (n *Node) trackIn(m *Mux, s *Socket) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.mux.Store(m)
	n.sockets[s] = struct{}{}
}

// pinWorkers keeps each worker on its CPU.
func (n *Node) pinWorkers() error {
	for i, w := range n.workers {
		if len(n.cfg.PinCPUs) == 0 {
			return nil
		}
		cpu, err := n.cfg.PinCPUs[i%len(n.cfg.PinCPUs)], error(nil)
		w.call(func() { err = pinThread(cpu) })
		if err != nil {
			return errors.Wrapf(err, "be: new node: keep worker %d on CPU %d of Config.PinCPUs", i, cpu)
		}
	}
	return nil
}

// pokeRoom tells the workers that more may arrive.
func (n *Node) pokeRoom() {
	for _, w := range n.workers {
		w.poke(&w.room)
	}
}

// pokeRetry tells the workers that memory came back.
func (n *Node) pokeRetry() {
	for _, w := range n.workers {
		w.poke(&w.retry)
	}
}

// onWorkers has f run on each worker, some time.
func (n *Node) onWorkers(f func(*worker)) {
	for _, w := range n.workers {
		w.submit(calling(func() { f(w) }))
	}
}

// closedErr is the error of a socket whose worker ended.
func (n *Node) closedErr(s *Socket) error {
	if err := s.Err(); err != nil {
		return err
	}
	return ErrClosed
}

// Close ends the node: what was queued is sent for at most Linger, each peer
// hears a goodbye, and everything is given back to the device. Buffers that the
// application still holds, or exposes, make it fail; Close again after freeing them. Damaged
// memory that a Free found is its error too, as is the first OwnerError that no call
// returned: once, and the node is closed. It waits for the workers, so it must not be
// called from a callback.
func (n *Node) Close() error {
	n.closeMu.Lock()
	defer n.closeMu.Unlock()
	n.mu.Lock()
	first := !n.closing
	n.closing = true
	listeners := n.listeners
	n.listeners = map[uint32]*Listener{}
	n.mu.Unlock()
	if first {
		for _, l := range listeners {
			l.Close()
		}
		n.end() // bootstraps and the event watcher
		n.onWorkers(func(w *worker) {
			w.leaving = true
			for _, c := range w.conns {
				if c != nil {
					c.e.Goodbye(w.now, w.now+n.cfg.Linger)
					w.touch(c)
				}
			}
		})
		n.wg.Wait() // bootstraps, watchers and engines
		n.onWorkers(func(w *worker) { w.quit = true })
		for _, w := range n.workers {
			<-w.done
		}
		n.mu.Lock()
		left := n.sockets
		n.sockets = map[*Socket]struct{}{}
		n.mu.Unlock()
		var muxes []*Mux
		for s := range left {
			s.end(ErrClosed)
			s.drain()
			if mux := s.mux.Load(); mux != nil && !slices.Contains(muxes, mux) {
				muxes = append(muxes, mux)
			}
		}
		for _, mux := range muxes {
			mux.drop(n)
		}
	}
	if n.released {
		return nil
	}
	var err error
	for _, w := range n.workers {
		if err2 := w.unshare(); err == nil {
			err = err2
		}
	}
	if err := n.mem.close(); err != nil {
		return errors.Wrapf(err, "be: %s: close node: registered memory: free every buffer of Alloc and Recv, then close again", n.device)
	}
	for _, w := range n.workers {
		if err2 := w.cq.Close(); err == nil && !errors.Is(err2, cq.ErrClosed) { // by a Close before
			err = err2
		}
	}
	err2 := n.pd.Close()
	if n.released = err2 == nil; err == nil {
		err = err2
	}
	if err == nil {
		err = n.mem.damaged()
	}
	return errors.Wrapf(err, "be: %s: close node", n.device)
}
