package msgtest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/pattern"
)

// Params says what to measure. Both ends need the same, but for Node, Weights, Get,
// Histogram, Busy and Depth.
type Params struct {
	Transport     string // OverBE or OverTCP
	Latency       bool   // else bandwidth
	Sizes         []int
	Iters         int           // messages of a socket and size; with Duration 0
	Duration      time.Duration // of each size; 0: by Iters
	Warm          int           // messages of a socket before that, which do not count
	Sockets       int
	Weights       []int // of the sockets, by turns; none: all are 1
	Unordered     bool  // sockets without order
	Get           bool  // large messages are read by the receiver
	Depth         int   // messages posted on a socket
	Bidirectional bool
	Verify        bool
	Seed          uint64
	Histogram     bool
	Busy          int // goroutines of this end that compute meanwhile
	Node          be.Config
	CM            bool // the nodes find each other by rdma_cm
	TCPBuffer     int  // bytes that each TCP connection's send buffer is asked to hold; 0: the system's
}

// Agreed lists, by flag, the options that must be equal at both ends.
func (p *Params) Agreed() map[string]string {
	m := map[string]string{
		"transport": p.Transport, "warm-up": fmt.Sprint(p.Warm), "unordered": fmt.Sprint(p.Unordered),
		"sockets": fmt.Sprint(p.Sockets), "bidirectional": fmt.Sprint(p.Bidirectional), "verify": fmt.Sprint(p.Verify),
		"iters": fmt.Sprint(p.Iters), "rdma_cm": fmt.Sprint(p.CM),
	}
	if p.Duration > 0 {
		delete(m, "iters")
		m["duration"] = p.Duration.String()
	}
	if len(p.Sizes) > 1 {
		m["all"] = "true"
	} else {
		m["size"] = fmt.Sprint(p.Sizes[0])
	}
	return m
}

// weight is that of a socket.
func (p *Params) weight(socket int) int {
	if len(p.Weights) == 0 {
		return 1
	}
	return p.Weights[socket%len(p.Weights)]
}

// A message begins with its number, in so many bytes if it is that long.
const numberBytes = 8

// seed is that of the bytes of one socket and direction.
func (p *Params) seed(socket int, fromClient bool) uint64 {
	dir := uint64(0)
	if fromClient {
		dir = 1
	}
	return pattern.Seed(p.Seed, uint64(socket), dir)
}

// fill writes what all messages of a seed have in common.
func fill(b []byte, seed uint64) {
	if len(b) > numberBytes {
		pattern.Fill(b[numberBytes:], seed)
	}
}

// stamp writes the number of the message.
func stamp(b []byte, m int64) {
	var n [numberBytes]byte
	binary.LittleEndian.PutUint64(n[:], uint64(m))
	copy(b, n[:])
}

// check tells what is wrong with message m; "" is nothing. Only with whole does it look
// at more than its length and number.
func check(b []byte, size int, seed uint64, m int64, whole bool) string {
	if len(b) != size {
		return fmt.Sprintf("%d bytes came, %d were sent", len(b), size)
	}
	var n [numberBytes]byte
	binary.LittleEndian.PutUint64(n[:], uint64(m))
	if head := min(size, numberBytes); string(b[:head]) != string(n[:head]) {
		return fmt.Sprintf("message %x came instead of %x", b[:head], slices.Clone(n[:head])) // a copy: n would be on the heap in every call
	}
	if whole && size > numberBytes {
		if at := pattern.Check(b[numberBytes:], seed); at >= 0 {
			return fmt.Sprintf("byte %d of %d is not what was sent", numberBytes+at, size)
		}
	}
	return ""
}
