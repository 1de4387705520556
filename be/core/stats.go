package core

import (
	"time"

	"github.com/byteexpress/byteexpress/cq"
)

// Stats counts what an engine did. Adding the fields of several engines gives
// those of a node.
type Stats struct {
	Sent           uint64 // messages that ended well
	Received       uint64 // messages delivered
	Eager          uint64 // messages sent whole in one SEND
	EagerBytes     uint64
	Rendezvous     uint64 // messages sent by WRITE
	WriteBytes     uint64
	Fragments      uint64 // WRITE and WRITE_WITH_IMM requests
	Sends          uint64 // SEND requests, control messages included
	Visits         uint64 // of sockets by the scheduler
	Puts           uint64 // messages written to buffers that the peer published
	Written        uint64 // writes of the peer to buffers that we published
	Fetches        uint64 // reads of memory that the peer exposed
	Offered        uint64 // messages sent that the peer read
	ReadBytes      uint64 // of the peer's messages in get mode, and of exposed memory
	Reads          uint64 // READ requests
	CreditMessages uint64 // of those, CREDIT
	Doorbells      uint64 // posts of send requests
	Requests       uint64 // send requests posted; by Doorbells: requests a doorbell
	Signaled       uint64 // of those, with a completion of their own
	RecvPosts      uint64 // posts of receives
	CreditStalls   uint64 // times that the peer's receives were used up with work waiting
	CreditStall    time.Duration
	WindowStalls   uint64 // times that the window was full with work waiting
	WindowStall    time.Duration
	CapStalls      uint64 // times that the bound over all engines was reached with work waiting
	CapStall       time.Duration
	SlotStalls     uint64 // times that the chain was full with work waiting
	SlotStall      time.Duration
	Recalls        uint64 // times that a peer was asked to give shared receives back
	Returned       uint64 // of those, how many it gave back
	Held           uint64 // large messages that had to wait for memory, or for others of their socket to be taken
	Queued         uint64 // large messages that had to wait until others had arrived
	Rejected       uint64
	Canceled       uint64 // messages that the peer gave up
	RNR            uint64 // requests that ended for lack of a posted receive
	Failures       uint64 // requests that ended with another error
	ProtocolErrors uint64
	CloseErrors    uint64
	Packed         uint64 // messages sent in the SEND of another one
	Copies         uint64 // messages that came packed, each copied to a buffer of its own; no other payload is copied

	// What is queued at the moment.
	Sending  uint64 // messages whose callers were not told yet
	Controls uint64 // control messages that wait for a credit or a slot
	InFlight uint64 // send requests posted and not completed
	Posted   uint64 // receives posted
	Waiting  uint64 // messages of the peer that wait for memory, or for others of their socket to be taken
}

// Add adds o's counts.
func (s *Stats) Add(o *Stats) {
	for _, p := range []struct {
		to   *uint64
		from uint64
	}{
		{&s.Sent, o.Sent}, {&s.Received, o.Received}, {&s.Eager, o.Eager}, {&s.EagerBytes, o.EagerBytes}, {&s.Rendezvous, o.Rendezvous},
		{&s.WriteBytes, o.WriteBytes}, {&s.Fragments, o.Fragments}, {&s.Sends, o.Sends}, {&s.CreditMessages, o.CreditMessages},
		{&s.Doorbells, o.Doorbells}, {&s.Requests, o.Requests}, {&s.RecvPosts, o.RecvPosts}, {&s.CreditStalls, o.CreditStalls},
		{&s.WindowStalls, o.WindowStalls}, {&s.SlotStalls, o.SlotStalls}, {&s.Held, o.Held}, {&s.Queued, o.Queued}, {&s.Rejected, o.Rejected},
		{&s.Canceled, o.Canceled}, {&s.RNR, o.RNR}, {&s.Failures, o.Failures}, {&s.ProtocolErrors, o.ProtocolErrors},
		{&s.CloseErrors, o.CloseErrors}, {&s.Packed, o.Packed}, {&s.Copies, o.Copies}, {&s.Signaled, o.Signaled}, {&s.Offered, o.Offered}, {&s.Puts, o.Puts}, {&s.Written, o.Written}, {&s.Fetches, o.Fetches}, {&s.ReadBytes, o.ReadBytes}, {&s.Reads, o.Reads}, {&s.CapStalls, o.CapStalls}, {&s.Visits, o.Visits}, {&s.Recalls, o.Recalls}, {&s.Returned, o.Returned},
		{&s.Sending, o.Sending}, {&s.Controls, o.Controls}, {&s.InFlight, o.InFlight}, {&s.Posted, o.Posted}, {&s.Waiting, o.Waiting},
	} {
		*p.to += p.from
	}
	s.CreditStall += o.CreditStall
	s.WindowStall += o.WindowStall
	s.CapStall += o.CapStall
	s.SlotStall += o.SlotStall
}

func (s *Stats) countStatus(st cq.Status) {
	switch st {
	case cq.WRFlushError:
	case cq.RNRRetryExceededError:
		s.RNR++
	default:
		s.Failures++
	}
}

// counts are those of Stats that small messages move: they are in one line of the cache.
type counts struct {
	sent, received    uint64
	eager, eagerBytes uint64 // of these, the visits and the SENDs are not in Stats
	doorbells         uint64
	requests          uint64
	signaled          uint64
}

// What work may wait for: bits of Engine.short.
const (
	ofCredits = 1 << iota
	ofWindow
	ofCap
	ofSlots
	lacks = iota
)

// stall measures how long something was short while there was work.
type stall struct {
	since time.Duration
	count uint64
	total time.Duration
}

// stall says what is short from now on.
func (e *Engine) stall(now time.Duration, short uint8) {
	if changed := e.short ^ short; changed != 0 {
		e.short = short
		for i := range e.stalls {
			s := &e.stalls[i]
			switch {
			case changed>>i&1 == 0:
			case short>>i&1 != 0:
				s.since = now
				s.count++
			default:
				s.total += now - s.since
			}
		}
	}
}

// Stats gives the counts so far.
func (e *Engine) Stats() Stats {
	s, c := e.stats, &e.counts
	s.Sent, s.Received, s.Eager, s.EagerBytes = c.sent, c.received, c.eager, c.eagerBytes
	s.Doorbells, s.Requests, s.Signaled = c.doorbells, c.requests, c.signaled
	s.Visits, s.Sends = s.Visits+c.eager, s.Sends+c.eager-s.Packed
	for i, to := range []struct {
		count *uint64
		total *time.Duration
	}{{&s.CreditStalls, &s.CreditStall}, {&s.WindowStalls, &s.WindowStall}, {&s.CapStalls, &s.CapStall}, {&s.SlotStalls, &s.SlotStall}} {
		*to.count, *to.total = e.stalls[i].count, e.stalls[i].total
	}
	if e.state != engineDown {
		s.Sending, s.Controls, s.Waiting = uint64(e.sending), uint64(e.controlling), uint64(e.Held()+e.parked.n)
		s.InFlight, s.Posted = uint64(e.chain.InFlight()), uint64(e.receiving())
	}
	return s
}
