package be

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// bootstrap brings one engine up over a line to the peer. One goroutine runs it.
type bootstrap struct {
	n       *Node
	attempt attempt
	addr    string // of the peer, for errors
	number  int    // of our worker, modulo how many there are
	wish    int    // of the dialer: which worker of the peer's, modulo how many there are
	theirs  int    // of the peer's worker, as in lane
	step    atomic.Pointer[string]

	greeted bool // the hellos were exchanged

	gidType string // that the peer can reach; empty: not known

	path  path
	q     qp.QP
	psn   qp.PSN
	own   hello
	their hello
	conn  *conn
}

// lane is known when the peer's hello is.
func (b *bootstrap) lane() lane { return lane{b.their.Incarnation, b.number, b.theirs} }

// worker drives the engine that comes up.
func (b *bootstrap) worker() *worker { return b.n.workers[b.number%len(b.n.workers)] }

// enter names the step that begins.
func (b *bootstrap) enter(step string) { b.step.Store(&step) }

// fail wraps the error of the present step.
func (b *bootstrap) fail(err error) error {
	if err == nil {
		return nil
	}
	return &StepError{Step: *b.step.Load(), Peer: b.addr, Err: err}
}

// prepare makes the queue pair and our hello.
func (b *bootstrap) prepare(listener uint32) error {
	n := b.n
	b.enter(StepPort)
	var err error
	if b.path, err = n.findPath(wish{gidOf(b.attempt.line), b.gidType}); err != nil {
		return b.fail(err)
	}
	b.enter(StepQP)
	if !b.worker().takeEntries() {
		return b.fail(fmt.Errorf("%w: %d completions of Config.CQEntries %d are spoken for, %d more needed: raise it",
			ErrEngines, b.worker().entries.Load(), b.worker().cq.Capacity(), b.worker().entriesEach()))
	}
	caps := qp.Caps{SendWR: n.cfg.SendDepth, RecvWR: n.cfg.RecvDepth, SendSGE: n.sendSGE, RecvSGE: 2}
	queues := verbs.QPConfig{SendCQ: b.worker().cq, RecvCQ: b.worker().cq, Caps: caps}
	if s := b.worker().shared; s != nil {
		if err := b.worker().renewShared(); err != nil {
			b.worker().freeEntries()
			return b.fail(err)
		}
		s.making.RLock()
		defer s.making.RUnlock()
		queues.SRQ, queues.Caps.RecvWR, queues.Caps.RecvSGE = s.srq, 0, 0
	}
	if b.q, err = n.pd.CreateQP(queues); err != nil {
		b.worker().freeEntries()
		return b.fail(err)
	}
	var r [4]byte
	rand.Read(r[:])
	b.psn = qp.PSN(binary.LittleEndian.Uint32(r[:])) & qp.PSNMask
	mtu := b.path.port.ActiveMTU
	if n.cfg.MTU != 0 {
		mtu = min(mtu, n.cfg.MTU)
	}
	b.own = n.hello(listener)
	b.own.Lane, b.own.PeerLane = b.number, b.wish
	b.own.Port, b.own.LinkLayer = n.cfg.Port, b.path.port.LinkLayer.String()
	b.own.GIDTypes = b.path.types
	b.own.GID, b.own.GIDType, b.own.LID = b.path.gid.GID, b.path.gid.Type.String(), b.path.port.LID
	b.own.MTU, b.own.QPNum, b.own.PSN = mtu.Bytes(), uint32(b.q.Num()), uint32(b.psn)
	return nil
}

// hello is what does not depend on the connection.
func (n *Node) hello(listener uint32) hello {
	expect := 0
	if n.inbound != nil {
		expect = n.inbound.Most()
	}
	return hello{
		Expect:   expect,
		Protocol: protocolName, Workers: len(n.workers), MinVersion: minVersion, MaxVersion: maxVersion, Incarnation: n.id, Listener: listener, Device: n.device,
		RecvDepth: n.cfg.RecvDepth, RecvMost: n.cfg.SharedReceives, Eager: n.cfg.EagerBytes, Fragment: n.cfg.FragmentBytes, MaxMessage: int64(n.cfg.MaxMessage),
		Backlog: n.cfg.Backlog, MaxSockets: n.cfg.MaxSockets, MaxReads: n.maxReads, TrafficClass: int(n.cfg.TrafficClass),
		ServiceLevel: int(n.cfg.ServiceLevel), Features: n.cfg.features(),
	}
}

// bringUp takes the queue pair to RTS, with its receives posted, and hands the
// engine to the worker.
func (b *bootstrap) bringUp(dialer bool) error {
	n := b.n
	b.enter("agree on the peer's hello")
	a, err := b.their.agree(&b.own, b.path.port.LinkLayer)
	if err != nil {
		return b.fail(err)
	}
	get := a.reads > 0 && b.their.has(&b.own, featureGet)
	access := domainAccess[writableDomain]
	if get {
		access |= domainAccess[readableDomain]
	}
	p := qp.Path{
		Port: uint8(n.cfg.Port), SGIDIndex: uint8(b.path.gid.Index), Access: access, SendPSN: b.psn,
		DestNum: qp.Num(b.their.QPNum), RecvPSN: qp.PSN(b.their.PSN), DGID: b.their.GID, LID: b.their.LID,
		Global: a.global, MTU: a.mtu, MaxReads: uint8(a.reads), MaxDestReads: uint8(a.reads),
		AckTimeout: n.cfg.AckTimeout, RetryCount: uint8(n.cfg.RetryCount), TrafficClass: n.cfg.TrafficClass, SL: n.cfg.ServiceLevel,
		RNRTimer: n.cfg.RNRTimer, HopLimit: uint8(n.cfg.HopLimit), FlowLabel: n.cfg.FlowLabel,
	}
	b.enter(StepInit)
	if err := p.ToInit(b.q); err != nil {
		return b.fail(err)
	}
	c := &conn{n: n, w: b.worker(), line: b.attempt.line, peer: b.their.Incarnation, number: b.number, theirs: b.theirs, addr: b.addr, limit: a.message, half: uint32(max(n.cfg.Backlog/2, 1)), eager: a.eager, born: time.Now()}
	if dialer {
		c.dialed = b.addr
	}
	w := b.worker()
	if !w.call(func() { c.index, _ = w.reserve() }) {
		return b.fail(ErrClosed)
	}
	cfg := core.Config{
		SendDepth: n.cfg.SendDepth, RecvDepth: n.cfg.RecvDepth, PeerDepth: b.their.RecvDepth, EagerLimit: a.eager, Fragment: a.fragment,
		Window: n.cfg.WindowBytes, WindowTarget: n.cfg.WindowTarget, Cap: w.cap, Scratch: w.scratch, MaxMessage: uint64(a.message), Backlog: n.cfg.Backlog, PeerBacklog: b.their.Backlog, MaxSockets: a.sockets,
		Initiator: dialer, IDBase: uint64(c.index) << idIndexShift, RecvBit: idRecv, SocketQuota: n.cfg.SocketQuotaBytes,
		Publish:   b.their.has(&b.own, featurePublish),
		Unordered: b.their.has(&b.own, featureUnordered), Get: get, HoldTimeout: n.cfg.HoldTimeout,
		Keepalive: n.cfg.Keepalive, PeerTimeout: n.cfg.PeerTimeout, DrainTimeout: n.cfg.StepTimeout, Linger: n.cfg.Linger,
	}
	if w.arrivals != nil {
		cfg.Arrivals, cfg.PeerExpect = w.arrivals, min(b.their.Expect, n.cfg.WindowBytes)
	}
	if w.shared != nil {
		cfg.Shared = w.shared.SharedRecv
	}
	if cfg.Lend = b.their.has(&b.own, featureLend); cfg.Lend {
		cfg.PeerMost = b.their.RecvMost
	}
	if cfg.Pack = b.their.has(&b.own, featurePack); cfg.Pack {
		cfg.PackLimit = n.cfg.PackBytes
	}
	e, err := core.NewEngine(cfg, b.q, n.mem, n.quota, c)
	if err != nil {
		return b.giveIndex(c, err)
	}
	c.e = e
	if b.their.has(&b.own, featureTags) {
		e.TagTokens(b.own.tag(), b.their.tag())
	}
	b.enter(StepReceives)
	if err := w.prepareEngine(c); err != nil {
		return b.giveIndex(c, err)
	}
	b.enter(StepRTR)
	if err := p.ToRTR(b.q); err != nil {
		n.goodGID.Store(nil) // perhaps it no longer is
		return b.giveIndex(c, err)
	}
	b.enter(StepRTS)
	if err := p.ToRTS(b.q); err != nil {
		return b.giveIndex(c, err)
	}
	n.wg.Add(1) // until conn.Down
	if !w.call(func() { err = w.add(c) }) {
		err = ErrClosed
	}
	if err != nil {
		n.wg.Done()
		return b.giveIndex(c, err)
	}
	b.q = nil // the engine's from now on
	b.conn = c
	return nil
}

// giveIndex undoes what bringUp did before the worker had the engine.
func (b *bootstrap) giveIndex(c *conn, err error) error {
	w := b.worker()
	w.submit(calling(func() { w.free = append(w.free, c.index) }))
	if c.e != nil {
		w.abortEngine(c)
		b.q = nil
		b.worker().freeEntries()
	}
	return b.fail(err)
}

// swapReady tells the peer that our queue pair is up, or err, and hears the same.
// The dialer speaks first: when the listener has heard it, both are up.
func (b *bootstrap) swapReady(dialer bool) error {
	publish := func() error {
		b.n.release(b.lane(), &b.attempt, b.conn)
		return nil
	}
	say := func() error {
		b.enter("say ready")
		return b.fail(writeFrame(b.attempt.line, b.n.cfg.StepTimeout, ready{Incarnation: b.n.id, Peer: b.their.Incarnation}))
	}
	hear := func() error {
		b.enter("wait for the peer's ready")
		var r ready
		if err := readFrame(b.attempt.line, b.n.cfg.StepTimeout, &r); err != nil {
			return b.fail(err)
		}
		if r.Error != "" {
			return b.fail(fmt.Errorf("%w: %s", ErrRefused, r.Error))
		}
		if r.Incarnation != b.their.Incarnation || r.Peer != b.n.id {
			return b.fail(fmt.Errorf("%w: ready is from %v to %v, expected from %v to %v", ErrIncarnation, r.Incarnation, r.Peer, b.their.Incarnation, b.n.id))
		}
		return nil
	}
	commit := func() error {
		if !b.n.commit(&b.attempt) {
			return errExists
		}
		return nil
	}
	steps := []func() error{commit, say, hear, b.start, publish}
	if !dialer {
		steps = []func() error{hear, commit, b.start, publish, say}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	b.attempt.line.SetDeadline(noDeadline)
	if t, ok := b.attempt.line.(*net.TCPConn); ok {
		t.SetNoDelay(true)
	}
	b.n.wg.Add(1)
	go b.conn.watch()
	return nil
}

func (b *bootstrap) start() error {
	c, w := b.conn, b.worker()
	ok := w.call(func() {
		if c.index >= 0 {
			c.e.Start(w.now)
			w.touch(c)
		}
	})
	if !ok {
		return b.fail(ErrClosed)
	}
	return nil
}

// undo gives back what a failed bootstrap made, and tells the peer why if it
// still listens.
func (b *bootstrap) undo(err error) {
	if b.greeted && !errors.Is(err, errExists) {
		text := err.Error()
		if step := new(StepError); errors.As(err, &step) {
			text = step.withoutPeer() // that is who reads it
		}
		writeFrame(b.attempt.line, b.n.cfg.StepTimeout, ready{Incarnation: b.n.id, Peer: b.their.Incarnation, Error: text})
	}
	b.attempt.line.Close()
	if b.q != nil {
		b.q.Close()
		b.q = nil
		b.worker().freeEntries()
	}
	if c := b.conn; c != nil {
		c.w.submit(calling(func() {
			if c.index >= 0 {
				c.e.Fail(c.w.now, c.peerError(err))
				c.w.touch(c)
			}
		}))
	}
}
