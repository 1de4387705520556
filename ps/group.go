package ps

import (
	"bytes"
	"math"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// group is what a replica knows of the others, and the rules by which they keep the same
// rows. It is given the time, and does no I/O: the driver sends what request gives to a
// peer's answer, and the answer to reply. The shard's lock guards it.
//
// Each replica applies what clients push to it at once, keeps it in its log, and sends
// its log to every peer. What came from a peer is in the log too, for the others. A push
// is answered when each peer has it, or has no lease.
//
// A lease is what a peer needs to be fetched from. It asks for one with every request,
// for Lease from when it asked; it gets it if it has every push that was answered.
// A peer that cannot be reached for half of Lease is held to be down, and no lease of
// it is needed.
type group struct {
	shard   *Shard
	lease   time.Duration
	self    int
	inc     uint64 // of this process
	log     *pushLog
	peers   []peer // by replica; that of self is unused
	joining bool   // the rows are not those of the group: nothing is served
	// rejoining is joining with rows: there is a peer that has what is lacking.
	rejoining bool
	// released is the last position that a client was told of.
	released uint64
	count    uint64 // pushes applied, for the choice of who begins
	forgot   uint64 // pushes of peers that could not be told from repetitions
	trouble  error  // why it does not get on

	ballot  uint64   // the highest ticket of a change that was heard of
	change  change   // what is being taken from this shard
	stage   *staging // what is being brought to it; nil: nothing
	pullers uint64   // that there were
	mapPos  uint64   // position of the latest map, or its opening; 0: it is not in the log
}

// peer is one other replica.
type peer struct {
	// Sending to it.
	inc     uint64        // its process; 0: it was not heard of
	told    uint64        // it said that it has all of the log up to here
	acked   uint64        // it has, with what came from itself after that
	granted time.Duration // it has a lease until then, counted here
	gap     bool          // it lacks what the log no longer has: it needs a snapshot
	joining bool          // it said so
	count   uint64        // likewise
	version uint32        // likewise: of its map
	// Receiving from it.
	recvInc uint64
	recvPos uint64 // all of its log up to here is applied here
	// Its lease to this replica.
	leased time.Duration // until then
	down   bool          // the last request failed
	since  time.Duration // when the first of the failures one after the other was seen
	last   time.Duration // and the last
}

func newGroup(s *Shard, self, replicas, logBytes int, inc uint64, lease time.Duration) *group {
	g := &group{shard: s, lease: lease, self: self, inc: inc, log: newPushLog(logBytes), peers: make([]peer, replicas), joining: replicas > 1}
	for i := range g.peers {
		g.peers[i].granted = math.MinInt64
	}
	return g
}

var (
	errJoining  = &archon.Error{Code: archon.Unavailable, Message: "the replica is not up to date yet: ask another", Retryable: true}
	errLease    = &archon.Error{Code: archon.Unavailable, Message: "the replica has not heard from the others of late: ask another", Retryable: true}
	errLogFull  = &archon.Error{Code: archon.ResourceExhausted, Message: "the log is full of pushes that a replica has yet to take: retry later, or raise LogBytes", Retryable: true}
	errNoID     = archon.Errorf(archon.InvalidArgument, "a push to replicas has no id")
	errLongPush = archon.Errorf(archon.InvalidArgument, "a push is longer than a quarter of the log: push fewer keys at once, or raise LogBytes")
)

// downUntil gives until when a peer may be held to be down. That needs failures one after
// the other for half a lease: a process that was stopped, and finds its connections
// broken when it goes on, must try anew.
func (p *peer) downUntil(lease time.Duration) time.Duration {
	if !p.down || p.last-p.since < lease/2 {
		return math.MinInt64
	}
	return p.last + lease/2
}

// servesUntil gives until when rows may be fetched here.
func (g *group) servesUntil() time.Duration {
	until := time.Duration(math.MaxInt64)
	if g.joining {
		return math.MinInt64
	}
	for i := range g.peers {
		if p := &g.peers[i]; i != g.self {
			served := p.leased
			if !g.change.prepared || !g.change.leaves { // else a peer that seems down may have the new map, and others what was moved
				served = max(served, p.downUntil(g.lease))
			}
			until = min(until, served)
		}
	}
	return until
}

// push applies a client's push and gives the position to wait for.
func (g *group) push(payload []byte, now time.Duration) (pos uint64, err error) {
	if err := g.serves(now); err != nil {
		return 0, err
	}
	if err := g.room(len(payload), now); err != nil {
		return 0, err
	}
	if err := g.apply(payload, -1, now); err != nil {
		return 0, err
	}
	return g.log.next - 1, nil // also of a repetition: the first one may be on its way still
}

// serves says why nothing is served now, if so.
func (g *group) serves(now time.Duration) error {
	switch {
	case g.joining:
		return errJoining
	case g.servesUntil() <= now:
		return errLease
	}
	return nil
}

// room refuses a push that would drop from the log what a peer with a lease lacks.
func (g *group) room(n int, now time.Duration) error {
	if n > len(g.log.ring)/4 {
		return errLongPush
	}
	first, _ := g.log.oldest(n)
	for i := range g.peers {
		if p := &g.peers[i]; i != g.self && p.granted >= now && p.acked+1 < first {
			return errLogFull
		}
	}
	return nil
}

// apply applies a push, unless it was applied before, and logs it.
func (g *group) apply(payload []byte, from int, now time.Duration) error {
	req, err := parseRequest(payload, &g.shard.cfg, true)
	if err != nil {
		return err
	}
	if req.id.client.Birth == 0 {
		return errNoID
	}
	if from < 0 && g.freezes(&req, now) {
		return errFrozen
	}
	if fresh, err := g.shard.accept(&req); !fresh {
		return err
	}
	g.log.add(entryPush, payload, from) // before the gradients are read in place
	g.shard.apply(&req)
	g.count++
	return nil
}

// settled tells whether a push at pos may be answered: each peer has it, or has no lease
// and is down or joining. A peer that can be reached is waited for though it has no
// lease: it may serve because it held this replica to be down until just now.
func (g *group) settled(pos uint64, now time.Duration) bool {
	alone := false
	for i := range g.peers {
		if p := &g.peers[i]; i != g.self && p.acked < pos {
			if p.granted >= now || p.downUntil(g.lease) <= now && !p.joining {
				return false
			}
			alone = true
		}
	}
	if alone && g.serves(now) != nil {
		return false
	}
	g.released = max(g.released, pos)
	return true
}

// skip passes over what the peer itself sent.
func (g *group) skip(i int) {
	p := &g.peers[i]
	for p.acked+1 >= g.log.first && p.acked+1 < g.log.next && g.log.entry(p.acked+1).peer == i {
		p.acked++
	}
}

// pending tells whether there is something to send to a peer at once.
func (g *group) pending(i int) bool {
	g.skip(i)
	p := &g.peers[i]
	return p.inc != 0 && !p.joining && p.acked+1 < g.log.next
}

// request appends the next request to a peer.
func (g *group) request(dst []byte, i int) []byte {
	g.skip(i)
	p := &g.peers[i]
	m := batch{from: i, sender: g.self, inc: g.inc, toInc: p.inc, base: p.told, upto: p.acked, have: p.recvPos, haveInc: p.recvInc, joining: g.joining, count: g.count, version: g.shard.own.version()}
	p.gap = p.acked+1 < g.log.first
	m.gap = p.gap
	dst = m.append(dst)
	at := len(dst)
	if p.inc == 0 || p.joining || p.gap {
		return dst
	}
	for pos := p.acked + 1; pos < g.log.next && len(dst)-at < maxBatch; pos++ {
		if e := g.log.entry(pos); e.peer != i {
			dst = appendEntry(dst, e.kind, g.log.payload(e))
		}
		m.upto = pos
	}
	m.setUpto(dst[at-batchHeader:])
	return dst
}

// answer takes a peer's request, and appends the answer.
func (g *group) answer(dst, b []byte, now time.Duration) ([]byte, error) {
	m, entries, err := parseBatch(b)
	if err != nil {
		return dst, err
	}
	if m.sender >= len(g.peers) || m.sender == g.self || m.from != g.self {
		return dst, archon.Errorf(archon.FailedPrecondition, "a request of replica %d to %d, this is %d of %d: all must have the same list", m.sender, m.from, g.self, len(g.peers))
	}
	p := &g.peers[m.sender]
	if p.inc != m.inc { // it is heard of, or anew; a lease that it had may still be used
		p.inc, p.told, p.acked = m.inc, 0, 0
	}
	p.joining, p.count, p.version = m.joining, m.count, m.version
	if m.gap && m.toInc == g.inc {
		g.rejoin(m.sender)
	}
	if !g.joining {
		if p.recvInc != m.inc {
			p.recvInc, p.recvPos = m.inc, 0
		}
		if m.base <= p.recvPos && m.toInc == g.inc {
			if err := g.take(entries, m.sender, now); err != nil {
				if !g.joining {
					g.trouble = err
				}
			} else {
				p.recvPos = max(p.recvPos, m.upto)
			}
		}
	}
	r := batchReply{inc: g.inc, joining: g.joining, count: g.count, version: g.shard.own.version()}
	if p.recvInc == m.inc {
		r.want, r.knows = p.recvPos, true
	}
	if m.haveInc == g.inc {
		p.told = max(p.told, m.have)
		p.acked = max(p.acked, p.told)
		g.skip(m.sender)
		if r.granted = !m.joining && !g.joining && p.acked >= g.released; r.granted {
			p.granted = now + g.lease
		}
	}
	return r.append(dst), nil
}

// take applies the entries of a request.
func (g *group) take(entries []byte, from int, now time.Duration) error {
	for len(entries) > 0 {
		var kind entryKind
		var payload []byte
		kind, payload, entries = nextEntry(entries)
		if len(payload) > len(g.log.ring)/4 {
			return errLongPush
		}
		if kind != entryPush {
			if err := g.takeMap(kind, payload, from); err != nil {
				return err
			}
		} else if err := g.apply(payload, from, now); err == ErrForgotten { //nolint:errorlint // apply does not wrap it
			g.forgot++
		} else if err != nil {
			return err
		}
	}
	return nil
}

// reply takes the answer to a request that was sent at a time.
func (g *group) reply(i int, b []byte, sent time.Duration) error {
	r, err := parseBatchReply(b)
	if err != nil {
		return err
	}
	p := &g.peers[i]
	if p.inc != r.inc {
		p.inc, p.told, p.acked = r.inc, 0, 0
	}
	p.down, p.joining, p.count, p.version = false, r.joining, r.count, r.version
	if r.knows {
		p.told = max(p.told, r.want)
		p.acked = max(p.acked, p.told)
	}
	if r.granted || r.joining { // one that joins answers no push yet, and waits a lease when it begins
		p.leased = max(p.leased, sent+g.lease)
	}
	return nil
}

// failed notes that a request to a peer had no answer.
func (g *group) failed(i int, now time.Duration) {
	p := &g.peers[i]
	if !p.down || now-p.last > g.lease/2 {
		p.since = now
	}
	p.down, p.last = true, now
}

// begin ends the joining of the replica that has the newest map and the most pushes, the
// first of several, when all are joining: the others copy it.
func (g *group) begin(now time.Duration) {
	if !g.joining || g.rejoining {
		return
	}
	for i := range g.peers {
		p := &g.peers[i]
		if i == g.self {
			continue
		}
		mine := g.shard.own.version()
		if p.inc == 0 || p.down || !p.joining || p.version > mine {
			return
		}
		if p.version == mine && (p.count > g.count || p.count == g.count && i < g.self) {
			return
		}
	}
	g.joined(now)
}

// joined begins to serve. Peers that were told of the joining may be fetched from for a lease.
func (g *group) joined(now time.Duration) {
	g.joining, g.rejoining = false, false
	for i := range g.peers {
		g.peers[i].granted = max(g.peers[i].granted, now+g.lease)
	}
}

// source gives a peer to copy, or -1.
func (g *group) source() int {
	if !g.joining {
		return -1
	}
	for i := range g.peers {
		if p := &g.peers[i]; i != g.self && p.inc != 0 && !p.down && !p.joining {
			return i
		}
	}
	return -1
}

// rejoin has the replica copy the peer, whose log no longer has what is lacking here.
// What was pushed here alone is kept in the log; if that has lost some of it too, only
// a person can decide.
func (g *group) rejoin(from int) {
	if g.log.first > g.peers[from].acked+1 {
		g.trouble = archon.Errorf(archon.DataLoss, "replicas %d and %d were apart for longer than their logs are: restart one, whose own pushes are lost, and raise LogBytes", g.self, from)
		return
	}
	g.joining, g.rejoining = true, true
}

// install makes the replica what a copy of a peer is, with the pushes that are in the log
// here and not there.
func (g *group) install(d *decoder, from int, head *copyHead, now time.Duration) (old *table) {
	s := g.shard
	old, g.trouble = s.table, nil
	newer := d.own.version() > s.own.version() || d.own.made != s.own.made || (d.own.before == nil) != (s.own.before == nil)
	s.table, s.clients, s.own, s.sweep = d.table, d.clients, d.own, sweep{}
	count := head.count
	for pos := g.log.first; pos < g.log.next; pos++ {
		e := g.log.entry(pos)
		if e.kind != entryPush {
			continue
		}
		req, err := parseRequest(bytes.Clone(g.log.payload(e)), &s.cfg, true)
		fresh := false
		if err == nil {
			fresh, err = s.accept(&req)
		}
		if fresh {
			s.apply(&req)
			count++
		}
		if err != nil {
			g.trouble = err
		}
	}
	p := &g.peers[from]
	p.recvInc, p.recvPos = head.inc, head.at
	g.count = count
	g.installChange(head, newer, from)
	g.joined(now)
	return old
}
