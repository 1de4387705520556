package core

import (
	"math"
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/mr"
)

const (
	// MaxPackLimit is the largest Config.PackLimit.
	MaxPackLimit = math.MaxUint16
	// MaxParts is how many messages go in one SEND at most.
	MaxParts = wire.MaxParts
)

// Config holds what both sides agreed on and what is this side's own. The driver
// has checked it.
type Config struct {
	// Large messages ask for these, which are in one line of the cache.
	Fragment    int           // bytes a WRITE at most
	MaxMessage  uint64        // bytes; the smaller one of both sides
	PeerExpect  int           // bytes of a large message that the peer has counted when it sends CTS: no window holds them up; 0: none
	SocketQuota int           // receive bytes one socket may hold; 0: no limit
	HoldTimeout time.Duration // how long a message waits for memory before it is rejected; 0: for ever

	SendDepth   int    // requests in the chain
	RecvDepth   int    // receives that we keep posted; at least 4
	PeerDepth   int    // receives that the peer posted, or granted, before it was ready
	PeerMost    int    // receives that the peer may grant at a time; at least PeerDepth, or 0 for as many
	EagerLimit  int    // bytes; longer messages go by rendezvous
	PackLimit   int    // bytes; messages up to here may go several in one SEND; 0: none do; at most MaxPackLimit
	Window      int    // bytes of posted, not completed fragments at most; at least one fragment
	Backlog     int    // messages a socket that our application has not taken
	PeerBacklog int    // the same of the peer
	MaxSockets  int    // sockets at a time, of each side
	Initiator   bool   // we dialed: our sockets have odd numbers
	Unordered   bool   // both sides know unordered sockets
	Publish     bool   // both sides know published buffers
	Get         bool   // both sides know get mode, and their queue pairs take READs
	Lend        bool   // both sides know RECALL and RETURN
	Pack        bool   // both sides know PACK
	IDBase      uint64 // ORed into the ID of each request; the low 32 bits must be 0
	RecvBit     uint64 // set in the ID of receives; the low 32 bits are 0

	Scratch      *Scratch      // shared with the driver's other engines; nil: none
	Shared       *SharedRecv   // gives the receives, RecvDepth of them promised; nil: the queue pair has its own
	WindowTarget time.Duration // of queueing, to which the window adapts; 0: it is static
	Arrivals     *Arrivals     // the line of large messages that peers send; nil: none, each is answered at once
	Cap          *Cap          // shared with the driver's other engines; nil: none
	Keepalive    time.Duration // idle time after which the peer is pinged; 0: never
	PeerTimeout  time.Duration // silence after which it is given up; 0: never
	DrainTimeout time.Duration // how long a failed queue pair may take to flush
	Linger       time.Duration // how long a closing socket may go on sending
}

// Memory is where buffers come from: registered, and known to the queue pair's
// protection domain. A key opens to a peer more than the buffer that it is given for,
// so buffers with different rights are in different regions.
type Memory interface {
	// Alloc gives n bytes that this side's device alone needs to reach.
	Alloc(n int) ([]byte, error)
	// AllocWritable gives n bytes, and the key with which a peer may write to them.
	AllocWritable(n int) ([]byte, mr.RKey, error)
	// Free gives a buffer of either back.
	Free(b []byte)
	// LKey gives the key of a buffer of either for this side's own requests.
	LKey(b []byte) (mr.LKey, error)
	// ReadKey gives the key with which a peer may read a buffer, false if none may.
	ReadKey(b []byte) (mr.RKey, bool)
}

// Quota bounds the receive memory that all engines of a node hold together.
type Quota interface {
	// Reserve takes n bytes, or none and false.
	Reserve(n int) bool
	// Release gives n bytes back.
	Release(n int)
}

// Handler is told what happens. Its methods run inside the engine's and must not
// call it, except where said.
type Handler interface {
	// Opened ends an Open: with nil the peer accepted.
	Opened(s *Socket, err error)
	// Incoming asks whether a socket that the peer opens is taken. With ok, the
	// handler may use the socket from now on.
	Incoming(s *Socket, listener uint32, service string) (refusal Refusal, ok bool)
	// Message hands over a message and the buffer that it is in. reserved is what
	// the receiver must Release to the quota when the application took it, and
	// then say by Taken.
	Message(s *Socket, b []byte, reserved int)
	// Closed is the last call for a socket that was open.
	Closed(s *Socket, err error)
	// Failed says that the engine ended, and why; Drained and Down follow.
	Failed(e *Engine, cause error)
	// Drained says that its queue pair is closed and its memory given back. It may still
	// have messages to deliver that lack memory.
	Drained(e *Engine)
	// Down is the last call of the engine.
	Down(e *Engine)
}
