package verbtest

import (
	"cmp"
	"fmt"
	"time"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// Op is the operation that is measured.
type Op uint8

// The operations, one work request each.
const (
	Send Op = iota
	Write
	WriteImm
	Read
	Atomic // 8-byte fetch-and-add
)

var opNames = [...]string{"send", "write", "write-imm", "read", "atomic"}

// String is the operation's name as the command spells it.
func (o Op) String() string { return opNames[o] }

// Ops lists all operations.
func Ops() []Op { return []Op{Send, Write, WriteImm, Read, Atomic} }

// opcode is the work request that carries the operation. SEND carries its number
// as immediate, so that the receiver can tell a message that is missing.
func (o Op) opcode() qp.Opcode {
	return [...]qp.Opcode{qp.SendWithImm, qp.Write, qp.WriteWithImm, qp.Read, qp.FetchAdd}[o]
}

// grants reports whether the receiver tells the initiator how many receives it has
// posted. Against perftest, RNR makes a fast sender wait.
func (p *Params) grants() bool { return p.Op.tellsReceiver() && !p.Latency && !p.foreign }

// tellsReceiver reports whether the receiver gets a completion for each message.
func (o Op) tellsReceiver() bool { return o == Send || o == WriteImm }

// pingPong reports whether latency is measured by answering each message.
func (o Op) pingPong() bool { return o != Read && o != Atomic }

// access is what the responder's memory and queue pairs allow.
func (o Op) access() mr.Access {
	switch o {
	case Write, WriteImm:
		return mr.LocalWrite | mr.RemoteWrite
	case Read:
		return mr.LocalWrite | mr.RemoteRead
	case Atomic:
		return mr.LocalWrite | mr.RemoteAtomic
	}
	return mr.LocalWrite
}

// Params says what to measure. Both ends need the same, except for the fields
// that choose or tune the local device.
type Params struct {
	Op            Op
	Latency       bool // else bandwidth
	Sizes         []int
	Iters         int           // messages a queue pair and size; with Duration 0
	Duration      time.Duration // of each size; 0: by Iters
	QPs           int           // queue pairs in each direction
	Threads       int           // goroutines that share them, in each direction
	TxDepth       int           // requests outstanding on a queue pair
	RxDepth       int           // receives posted on a queue pair
	Bidirectional bool
	Verify        bool
	CM            bool   // connect by rdma_cm
	Seed          uint64 // of the bytes that are sent

	// Local choices.
	Port         int   // port of the device; 0: the best one
	GIDIndex     int   // -1: the best one
	MTUBytes     int   // 0: the port's
	CQMod        int   // every so many requests one is signaled
	PostList     int   // requests a doorbell
	Inline       int   // messages up to so many bytes go inline
	Outs         int   // READs and atomics outstanding; 0: the device's limit
	AckTimeout   uint8 // verbs encoding: 4.096 us * 2^n
	RetryCount   uint8 // 1..7; 0 is qp.DefaultRetryCount, and so on
	RNRTimer     uint8 // verbs encoding
	HopLimit     uint8
	FlowLabel    uint32 // 20 bits
	ServiceLevel uint8  // 0..7
	TrafficClass uint8  // DSCP << 2
	Events       bool   // sleep for completions instead of polling
	NoPeak       bool   // no clock reading for each doorbell: neither peak nor percentiles
	Histogram    bool   // rows carry the latency histogram
	Device       string // for messages

	// foreign tells that the peer is a program of perftest: its SENDs carry no
	// number, it gives no grants, and it may cycle its messages through the first
	// page of our memory.
	foreign bool
	page    int // length of that page in bytes
}

// Agreed lists, by flag, the options that must be equal at both ends.
func (p *Params) Agreed() map[string]string {
	m := map[string]string{
		"qp": fmt.Sprint(p.QPs), "threads": fmt.Sprint(p.Threads), "tx-depth": fmt.Sprint(p.TxDepth), "rx-depth": fmt.Sprint(p.RxDepth),
		"bidirectional": fmt.Sprint(p.Bidirectional), "verify": fmt.Sprint(p.Verify), "rdma_cm": fmt.Sprint(p.CM), "iters": fmt.Sprint(p.Iters),
	}
	if p.Duration > 0 {
		delete(m, "iters")
		m["duration"] = p.Duration.String()
	}
	switch {
	case p.Op == Atomic:
	case len(p.Sizes) > 1:
		m["all"] = "true"
	default:
		m["size"] = fmt.Sprint(p.Sizes[0])
	}
	return m
}

// slotAlign keeps message slots on cache lines, and atomics aligned.
const slotAlign = 64

// areaBudget bounds the memory of all message slots of one kind at one end, in
// bytes, unless a single message is longer.
const areaBudget = 32 << 20

// layout is how the message slots of one queue pair lie in memory.
type layout struct {
	size, stride, slots int
}

// layout gives a queue pair's slots for messages of a size: as many as can be
// outstanding, fewer when messages are long.
func (p *Params) layout(size int) layout {
	stride := (size + slotAlign - 1) / slotAlign * slotAlign
	want := max(p.TxDepth, p.RxDepth)
	if p.Latency {
		want = 2
	}
	if p.oneArea() {
		return layout{size, stride, max(1, cmp.Or(p.page, cycle)/stride)}
	}
	return layout{size, stride, max(1, min(want, areaBudget/p.QPs/stride))}
}

// cycle is how many bytes short messages go round in, as in perftest on most machines.
const cycle = 4096

// oneArea reports messages that lie in a page of slots, or all in one if they are
// longer: so perftest has it, which keeps them in the cache. Without verification they
// may overwrite each other.
func (p *Params) oneArea() bool { return (p.foreign || !p.Verify) && !p.Op.tellsReceiver() }

// areaBytes is how much memory the slots of a queue pair need, for all sizes.
func (p *Params) areaBytes(l layout) int {
	if !p.foreign {
		return l.bytes()
	}
	most := p.page
	for _, size := range p.Sizes {
		most = max(most, p.layout(size).bytes())
	}
	return most
}

func (l layout) bytes() int { return l.stride * l.slots }

// slot gives the bytes of the slot of message m.
func (l layout) slot(area []byte, m int64) []byte {
	at := int(m%int64(l.slots)) * l.stride
	return area[at : at+l.size]
}

// offset is where in the area message m lies.
func (l layout) offset(m int64) uint64 { return uint64(m%int64(l.slots)) * uint64(l.stride) }

// rxDepth is how many receives are posted: no more than there are slots.
func (p *Params) rxDepth(l layout) int {
	if p.foreign { // none may be left for the next size
		return min(p.RxDepth, l.slots, p.Iters)
	}
	return min(p.RxDepth, l.slots)
}

// txDepth is how many requests are outstanding. What a READ or an atomic brings
// needs a slot of its own.
func (p *Params) txDepth(l layout) int {
	switch {
	case p.Latency && !p.Op.pingPong():
		return 1
	case p.Op.pingPong(), p.oneArea():
		return p.TxDepth
	}
	return min(p.TxDepth, l.slots)
}
