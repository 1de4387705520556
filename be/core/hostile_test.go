package core

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/cq"
)

// victim is one engine whose peer sends whatever the test wants.
type victim struct {
	*world
	*side
}

// newVictim makes an engine that did not dial: the peer's sockets are odd.
func newVictim(t testing.TB) *victim {
	w := newWorldIn(t, newFakeMemory(arenaBytes/8), 1, [2]Config{testConfig(), testConfig()})
	return &victim{w, w.sides[1]}
}

// inject has a message of the peer arrive.
func (v *victim) inject(b []byte) {
	if len(v.side.qp.rq) == 0 || v.down {
		return
	}
	r := v.side.qp.rq[0]
	v.side.qp.rq = v.side.qp.rq[1:]
	n := len(b)
	for _, g := range r.SGEs {
		b = b[copy(v.side.mem.at(g.Addr, g.Length), b):]
	}
	v.arrive(cq.Completion{ID: r.ID, ByteLen: uint32(n - len(b)), Opcode: cq.Recv})
}

// final has an immediate of the peer arrive.
func (v *victim) final(imm, n uint32) {
	if len(v.side.qp.rq) == 0 || v.down {
		return
	}
	r := v.side.qp.rq[0]
	v.side.qp.rq = v.side.qp.rq[1:]
	v.arrive(cq.Completion{ID: r.ID, ByteLen: n, Opcode: cq.RecvWriteWithImm, Imm: imm, Flags: cq.HasImm})
}

func (v *victim) arrive(c cq.Completion) {
	v.now++
	v.e.Complete(v.now, &c)
	v.e.Flush(v.now)
	// Whatever it answers is done at once.
	v.side.qp.acks = append(v.side.qp.acks, v.side.qp.sq...)
	v.side.qp.sq = nil
	for v.side.qp.ack() || v.poll(v.now, false) {
	}
	v.check(v.side)
}

// message encodes a message that claims one more receive than before.
func (v *victim) message(t wire.Type, socket, seq uint32, body ...byte) []byte {
	h := wire.Header{Type: t, Granted: uint32(v.e.credits.consumed) + 16, Socket: socket, Sequence: seq}
	b := make([]byte, wire.HeaderLen)
	h.Put(b)
	return append(b, body...)
}

func part(socket, seq, n uint32) wire.Part {
	return wire.Part{Socket: socket, Sequence: seq, Length: n}
}

// pack encodes a PACK.
func (v *victim) pack(payload string, parts ...wire.Part) []byte {
	b := v.message(wire.Pack, 0, uint32(len(parts)), make([]byte, len(parts)*wire.PartLen)...)
	for i := range parts {
		parts[i].Put(b, i)
	}
	return append(b, payload...)
}

// offer has the victim offer message 0 of socket 1.
func (v *victim) offer() {
	v.open()
	v.e.SetGet(v.in[0], true)
	v.sendLarge(5000)
}

// publish has the victim publish n bytes on socket 1, and gives the transfer.
func (v *victim) publish(n int) uint32 {
	v.open()
	b, _ := v.side.mem.Alloc(n)
	k, err := v.e.Publish(v.in[0], b, writeKey, func(err error) {
		if err != nil {
			v.side.mem.Free(b)
		}
	})
	if err != nil {
		panic(err)
	}
	return k.Transfer
}

// offered is the peer's offer of a message of socket 1.
func (v *victim) offered(seq uint32, n, addr uint64) []byte {
	return flagged(v.message(wire.RTS, 1, seq, append(append(u64(n), u64(addr)...), u32s(2)...)...), wire.FlagGet)
}

// flagged sets flags in a message.
func flagged(b []byte, flags byte) []byte {
	b[1] = flags
	return b
}

func u32s(vs ...uint32) (b []byte) {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// open has the peer open socket 1.
func (v *victim) open() { v.inject(v.message(wire.Open, 1, 0, append(u32s(1), "x"...)...)) }

// ask has the peer ask for a message of n bytes on socket 1, and gives the
// transfer.
func (v *victim) ask(seq uint32, n uint64) uint32 {
	v.inject(v.message(wire.RTS, 1, seq, u64(n)...))
	for i := range v.e.transfers.slots {
		if s := &v.e.transfers.slots[i]; s.in != nil && s.in.seq == seq {
			return wire.Transfer(i, s.generation)
		}
	}
	return 0
}

// sendLarge asks the peer for room, as message 0 of socket 1.
func (v *victim) sendLarge(n int) *flow {
	f := new(flow)
	v.send(v.side, v.in[0], f, n, 9)
	v.e.Flush(v.now)
	return f
}

// TestHostilePeer is case C22 for messages and immediates: each ends the engine
// with a protocol error that names the field, and memory comes back.
func TestHostilePeer(t *testing.T) {
	for _, tt := range []struct {
		desc string
		do   func(v *victim)
		want string // in the error; empty: no error
	}{
		{"short message", func(v *victim) { v.inject(make([]byte, 15)) }, "message length"},
		{"empty message", func(v *victim) { v.inject(nil) }, "message length"},
		{"type 0", func(v *victim) { v.inject(make([]byte, 16)) }, "type"},
		{"unknown type", func(v *victim) { v.inject(v.message(99, 0, 0)) }, "type"},
		{"too many credits", func(v *victim) {
			b := v.message(wire.Credit, 0, 0)
			binary.LittleEndian.PutUint32(b[4:], 1<<20)
			v.inject(b)
		}, "granted"},
		{"old credits", func(v *victim) {
			b := v.message(wire.Credit, 0, 0)
			binary.LittleEndian.PutUint32(b[4:], 0)
			v.inject(b)
		}, ""},
		{"data for no socket", func(v *victim) { v.inject(v.message(wire.Data, 77, 0, 1, 2)) }, "socket of DATA is 77"},
		{"data for socket 2^32-1", func(v *victim) { v.inject(v.message(wire.Data, 1<<32-1, 0)) }, "socket"},
		{"open of socket 0", func(v *victim) { v.inject(v.message(wire.Open, 0, 0, u32s(1)...)) }, "socket of OPEN"},
		{"open of our number", func(v *victim) { v.inject(v.message(wire.Open, 2, 0, u32s(1)...)) }, "socket of OPEN"},
		{"open beyond the limit", func(v *victim) { v.inject(v.message(wire.Open, 1<<30+1, 0, u32s(1)...)) }, "socket of OPEN"},
		{"open twice", func(v *victim) { v.open(); v.open() }, "socket of OPEN"},
		{"open without a service's length", func(v *victim) { v.inject(v.message(wire.Open, 1, 0, 1)) }, "body length"},
		{"open with a bad name", func(v *victim) { v.inject(v.message(wire.Open, 1, 0, 1, 0, 0, 0, 0xff)) }, "service"},
		{"open with an unknown flag", func(v *victim) { v.inject(flagged(v.message(wire.Open, 1, 0, u32s(1)...), 2)) }, "flags of OPEN is 2"},
		{"open of a kind that was not agreed on", func(v *victim) {
			v.e.cfg.Unordered = false
			v.inject(flagged(v.message(wire.Open, 1, 0, u32s(1)...), wire.FlagUnordered))
		}, "flags of OPEN is 1"},
		{"flag of another type", func(v *victim) { v.open(); v.inject(flagged(v.message(wire.Data, 1, 0), 1)) }, "flags of DATA"},
		{"unordered socket", func(v *victim) {
			v.inject(flagged(v.message(wire.Open, 1, 0, u32s(1)...), wire.FlagUnordered))
			x := v.ask(0, 5000)
			v.inject(v.message(wire.Data, 1, 1, 1, 2, 3))
			if len(v.got[1]) != 1 {
				panic("the second message waits for the first")
			}
			v.final(x, 904)
		}, ""},
		{"unordered socket, sequence repeated", func(v *victim) {
			v.inject(flagged(v.message(wire.Open, 1, 0, u32s(1)...), wire.FlagUnordered))
			v.ask(0, 5000)
			v.inject(v.message(wire.Data, 1, 0, 1, 2, 3))
		}, "sequence of DATA"},
		{"pack", func(v *victim) {
			v.open()
			v.inject(v.pack("abcde", part(1, 0, 3), part(1, 1, 0), part(1, 2, 2)))
			if len(v.got[1]) != 3 || string(v.got[1][0]) != "abc" || len(v.got[1][1]) != 0 || string(v.got[1][2]) != "de" {
				panic("not what was sent")
			}
		}, ""},
		{"pack that was not agreed on", func(v *victim) {
			v.e.cfg.Pack = false
			v.open()
			v.inject(v.pack("", part(1, 0, 0), part(1, 1, 0)))
		}, "type of PACK"},
		{"pack of nothing", func(v *victim) { v.open(); v.inject(v.pack("")) }, "parts of PACK is 0"},
		{"pack of one", func(v *victim) { v.open(); v.inject(v.pack("a", part(1, 0, 1))) }, "parts of PACK is 1"},
		{"pack of 17", func(v *victim) { v.open(); v.inject(v.pack("", make([]wire.Part, 17)...)) }, "parts of PACK is 17"},
		{"pack of 2^32-1", func(v *victim) { v.open(); v.inject(v.message(wire.Pack, 0, 1<<32-1, make([]byte, 100)...)) }, "parts of PACK is 4294967295"},
		{"pack with a cut table", func(v *victim) { v.open(); v.inject(v.message(wire.Pack, 0, 2, make([]byte, 23)...)) }, "body length of PACK is 23"},
		{"pack that is too short", func(v *victim) { v.open(); v.inject(v.pack("abc", part(1, 0, 2), part(1, 1, 2))) }, "sum of lengths of PACK is 4"},
		{"pack with bytes left", func(v *victim) { v.open(); v.inject(v.pack("abcde", part(1, 0, 2), part(1, 1, 2))) }, "sum of lengths of PACK is 4"},
		{"pack with lengths of 2^32-1 and 1", func(v *victim) { v.open(); v.inject(v.pack("", part(1, 0, 1<<32-1), part(1, 1, 1))) }, "sum of lengths of PACK is 4294967296"},
		{"pack on a socket", func(v *victim) {
			v.open()
			b := v.pack("", part(1, 0, 0), part(1, 1, 0))
			b[8] = 1
			v.inject(b)
		}, "socket of PACK is 1"},
		{"pack with a part for no socket", func(v *victim) {
			v.open()
			v.inject(v.pack("ab", part(1, 0, 1), part(77, 0, 1)))
			if len(v.got[1]) != 0 {
				panic("half of it was delivered")
			}
		}, "socket of PACK is 77"},
		{"pack with the same message twice", func(v *victim) { v.open(); v.inject(v.pack("ab", part(1, 0, 1), part(1, 0, 1))) }, "sequence of PACK is 0"},
		{"pack in another order", func(v *victim) { v.open(); v.inject(v.pack("ab", part(1, 1, 1), part(1, 0, 1))) }, "sequence of PACK is 1"},
		{"pack beyond the backlog", func(v *victim) {
			v.keep = true
			v.open()
			parts := make([]wire.Part, 9)
			for i := range parts {
				parts[i] = wire.Part{Socket: 1, Sequence: uint32(i)}
			}
			v.inject(v.pack("", parts...))
		}, "sequence of PACK is 8, want at most the backlog"},
		{"pack for a socket that was not accepted", func(v *victim) {
			if _, err := v.e.Open(1, "y", nil); err != nil {
				panic(err)
			}
			v.inject(v.pack("ab", part(2, 0, 1), part(2, 1, 1)))
		}, "socket of PACK is 2, want a socket that was accepted"},
		{"pack with flags", func(v *victim) { v.open(); v.inject(flagged(v.pack("", part(1, 0, 0), part(1, 1, 0)), 1)) }, "flags of PACK"},
		{"accept of nothing", func(v *victim) { v.open(); v.inject(v.message(wire.Accept, 1, 0)) }, "socket of ACCEPT"},
		{"sequence skipped", func(v *victim) { v.open(); v.inject(v.message(wire.Data, 1, 1)) }, "sequence of DATA is 1"},
		{"sequence repeated", func(v *victim) {
			v.open()
			v.inject(v.message(wire.Data, 1, 0))
			v.inject(v.message(wire.Data, 1, 0))
		}, "sequence"},
		{"beyond the backlog", func(v *victim) {
			v.keep = true
			v.open()
			for i := range uint32(9) {
				v.inject(v.message(wire.Data, 1, i))
			}
		}, "backlog"},
		{"length of 2^64-1", func(v *victim) { v.open(); v.inject(v.message(wire.RTS, 1, 0, u64(1<<64-1)...)) }, "length of RTS is 18446744073709551615"},
		{"length one too many", func(v *victim) { v.open(); v.inject(v.message(wire.RTS, 1, 0, u64(1<<20+1)...)) }, "length of RTS"},
		{"rts with a long body", func(v *victim) { v.open(); v.inject(v.message(wire.RTS, 1, 0, make([]byte, 9)...)) }, "body length of RTS"},
		{"immediate of nothing", func(v *victim) { v.final(0, 0) }, "immediate"},
		{"immediate 2^32-1", func(v *victim) { v.open(); v.ask(0, 5000); v.final(1<<32-1, 904) }, "immediate"},
		{"immediate of another generation", func(v *victim) { v.open(); v.final(v.ask(0, 5000)+1<<wire.TransferBits, 904) }, "immediate"},
		{"final fragment twice", func(v *victim) {
			v.open()
			x := v.ask(0, 5000)
			v.final(x, 904)
			v.final(x, 904)
		}, "immediate"},
		{"final fragment too short", func(v *victim) { v.open(); v.final(v.ask(0, 5000), 0) }, "length of the final fragment is 0"},
		{"final fragment longer than the message", func(v *victim) { v.open(); v.final(v.ask(0, 1500), 1501) }, "length of the final fragment is 1501"},
		{"final fragment longer than a fragment", func(v *victim) { v.open(); v.final(v.ask(0, 4096), 4096) }, "length of the final fragment"},
		{"final after cancel", func(v *victim) {
			v.open()
			x := v.ask(0, 5000)
			v.inject(v.message(wire.Cancel, 1, 0))
			v.final(x, 904)
		}, "immediate"},
		{"final after close", func(v *victim) {
			v.open()
			x := v.ask(0, 5000)
			v.inject(v.message(wire.Close, 1, 0, u32s(0)...))
			v.final(x, 904)
		}, "immediate"},
		{"cancel of nothing", func(v *victim) { v.open(); v.inject(v.message(wire.Cancel, 1, 0)) }, "sequence of CANCEL"},
		{"cts of nothing", func(v *victim) { v.open(); v.inject(v.message(wire.CTS, 1, 0, make([]byte, 16)...)) }, "sequence of CTS"},
		{"cts at the end of memory", func(v *victim) {
			v.open()
			v.sendLarge(5000)
			v.inject(v.message(wire.CTS, 1, 0, append(u32s(0, 0xffffff00, 0xffffffff), u32s(2)...)...))
		}, "address of CTS"},
		{"cts after our cancel", func(v *victim) {
			v.open()
			v.sendLarge(5000)
			v.e.Cancel(v.in[0], 9)
			v.inject(v.message(wire.CTS, 1, 0, make([]byte, 16)...))
		}, ""},
		{"reject of nothing", func(v *victim) { v.open(); v.inject(v.message(wire.Reject, 1, 5, u32s(1)...)) }, "sequence of REJECT"},
		{"closed without close", func(v *victim) { v.open(); v.inject(v.message(wire.Closed, 1, 0, u32s(0)...)) }, "socket of CLOSED"},
		{"data after close", func(v *victim) {
			v.open()
			v.inject(v.message(wire.Close, 1, 0, u32s(0)...))
			v.inject(v.message(wire.Data, 1, 0))
		}, "socket of DATA"},
		{"taken more than sent", func(v *victim) { v.open(); v.inject(v.message(wire.SocketCredit, 1, 1)) }, "sequence of SOCKET_CREDIT"},
		{"taken less than before", func(v *victim) { v.open(); v.inject(v.message(wire.SocketCredit, 1, 1<<32-1)) }, "sequence of SOCKET_CREDIT"},
		{"fin of nothing", func(v *victim) { v.open(); v.inject(v.message(wire.Fin, 1, 0, u32s(0, 0)...)) }, "sequence of FIN"},
		{"fin of what was not offered", func(v *victim) {
			v.open()
			v.sendLarge(5000)
			v.inject(v.message(wire.Fin, 1, 0, u32s(0, 0)...))
		}, "sequence of FIN"},
		{"fin with a transfer", func(v *victim) { v.offer(); v.inject(v.message(wire.Fin, 1, 0, u32s(1, 0)...)) }, "transfer of FIN is 1"},
		{"fin twice", func(v *victim) {
			v.offer()
			v.inject(v.message(wire.Fin, 1, 0, u32s(0, 0)...))
			v.inject(v.message(wire.Fin, 1, 0, u32s(0, 0)...))
		}, "sequence of FIN"},
		{"fin that says no", func(v *victim) { v.offer(); v.inject(v.message(wire.Fin, 1, 0, u32s(0, 1<<32-1)...)) }, ""},
		{"fin after our cancel", func(v *victim) {
			v.offer()
			v.e.Cancel(v.in[0], 9)
			v.inject(v.message(wire.Fin, 1, 0, u32s(0, 0)...))
		}, ""},
		{"reject after our cancel", func(v *victim) {
			v.offer()
			v.e.Cancel(v.in[0], 9)
			v.inject(v.message(wire.Reject, 1, 0, u32s(5)...))
		}, ""},
		{"close of what it may read", func(v *victim) { v.offer(); v.inject(v.message(wire.Close, 1, 0, u32s(0)...)) }, ""},
		{"cts for an offer", func(v *victim) { v.offer(); v.inject(v.message(wire.CTS, 1, 0, make([]byte, 16)...)) }, "sequence of CTS"},
		{"offer that was not agreed on", func(v *victim) {
			v.open()
			v.e.cfg.Get = false
			v.inject(v.offered(0, 5000, 4096))
		}, "flags of RTS"},
		{"offer of nothing", func(v *victim) { v.open(); v.inject(v.offered(0, 0, 4096)) }, "length of RTS is 0"},
		{"offer beyond the end of memory", func(v *victim) { v.open(); v.inject(v.offered(0, 5000, 1<<64-4999)) }, "address of RTS"},
		{"offer of 2^64-1 bytes", func(v *victim) { v.open(); v.inject(v.offered(0, 1<<64-1, 0)) }, "length of RTS is 18446744073709551615"},
		{"offer with a short body", func(v *victim) { v.open(); v.inject(flagged(v.message(wire.RTS, 1, 0, u64(5000)...), wire.FlagGet)) }, "body length of RTS"},
		{"offer, cancel, cancel", func(v *victim) {
			v.open()
			v.inject(v.offered(0, 5000, v.side.mem.base))
			v.inject(v.message(wire.Cancel, 1, 0))
			v.inject(v.message(wire.Cancel, 1, 0))
		}, ""},
		{"writes to a published buffer", func(v *victim) { x := v.publish(5000); v.final(x, 904); v.final(x, 2048); v.final(x, 0) }, ""},
		{"write longer than a fragment", func(v *victim) { v.final(v.publish(5000), 2049) }, "length of the final fragment is 2049"},
		{"write longer than the published buffer", func(v *victim) { v.final(v.publish(100), 101) }, "length of the final fragment is 101"},
		{"write to a published buffer after close", func(v *victim) {
			x := v.publish(5000)
			v.inject(v.message(wire.Close, 1, 0, u32s(0)...))
			v.final(x, 904)
		}, "immediate"},
		{"final instead of reading", func(v *victim) { v.open(); v.inject(v.offered(0, 5000, v.side.mem.base)); v.final(0, 904) }, "immediate"},
		{"ping with a body of 7", func(v *victim) { v.inject(v.message(wire.Ping, 0, 0, make([]byte, 7)...)) }, "body length of PING"},
		{"good peer", func(v *victim) {
			v.open()
			v.final(v.ask(0, 5000), 904)
			v.inject(v.message(wire.Data, 1, 1, 1, 2, 3))
			v.inject(v.message(wire.Ping, 0, 0, u64(5)...))
			v.inject(v.message(wire.Close, 1, 0, u32s(0)...))
		}, ""},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			v := newVictim(t)
			tt.do(v)
			switch {
			case tt.want == "" && v.failed != nil:
				t.Errorf("failed: %v", v.failed)
			case tt.want != "" && (!errors.Is(v.failed, ErrProtocol) || !strings.Contains(v.failed.Error(), tt.want)):
				t.Errorf("error %v, want a protocol error with %q", v.failed, tt.want)
			}
			if tt.want != "" && v.e.Stats().ProtocolErrors != 1 {
				t.Errorf("%d protocol errors were counted", v.e.Stats().ProtocolErrors)
			}
			v.end()
		})
	}
}

// TestFloodWithoutCredits: a peer that asks without end and never grants is cut
// off before the answers fill the memory.
func TestFloodWithoutCredits(t *testing.T) {
	v := newVictim(t)
	for i := 0; v.failed == nil && i < 2*maxControls; i++ {
		b := v.message(wire.Ping, 0, 0, u64(1)...)
		binary.LittleEndian.PutUint32(b[4:], 16) // what it posted before
		v.inject(b)
	}
	if !errors.Is(v.failed, ErrProtocol) {
		t.Errorf("after a flood: %v", v.failed)
	}
	v.end()
}

// FuzzPeer has an engine take what the fuzzer makes of records: a kind, a
// socket, a sequence, and a body.
func FuzzPeer(f *testing.F) {
	record := func(kind, socket, seq byte, body ...byte) []byte {
		return append([]byte{kind, socket, seq, byte(len(body))}, body...)
	}
	open := record(byte(wire.Open), 1, 0, 1, 0, 0, 0, 'x')
	f.Add(append(open[:len(open):len(open)], record(byte(wire.RTS), 1, 0, u64(5000)...)...))
	f.Add(append(open[:len(open):len(open)], record(byte(wire.Data), 1, 0, 1, 2, 3)...))
	f.Add(append(open[:len(open):len(open)], record(0xd0, 0, 200)...))
	f.Add(append(open[:len(open):len(open)], record(0xd1, 0, 0)...))
	f.Add(append(append(open[:len(open):len(open)], record(byte(wire.RTS), 1, 0, u64(100)...)...), record(0xe0, 100, 0, 0, 0, 0, 0)...))
	f.Add(append(record(0xc0|byte(wire.Open), 1, 0, 1, 0, 0, 0, 'x'), append(record(byte(wire.RTS), 1, 0, u64(100)...), record(byte(wire.Data), 1, 1)...)...))
	f.Add(append(open[:len(open):len(open)], append(record(0xc0|byte(wire.RTS), 1, 0, append(append(u64(5000), u64(64)...), u32s(2)...)...), record(byte(wire.Cancel), 1, 0)...)...))
	f.Add(append(open[:len(open):len(open)], append(record(0xd3, 0, 200), record(byte(wire.Fin), 1, 0, u32s(0, 0)...)...)...))
	f.Add(append(open[:len(open):len(open)], record(byte(wire.Pack), 0, 2, append(u32s(1, 0, 2, 1, 1, 1), 'a', 'b', 'c')...)...))
	f.Add(append(open[:len(open):len(open)], append(record(0xd5, 0, 0), record(byte(wire.Pack), 0, 2, append(u32s(1, 0, 2, 1, 1, 1), 'a', 'b', 'c')...)...)...))
	f.Add(record(0xf0, 0, 0, make([]byte, 40)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		v := newVictim(t)
		fl := new(flow)
		for n := 0; len(b) >= 4 && n < 200; n++ {
			kind, socket, seq := b[0], uint32(b[1]), uint32(b[2])
			body := b[4:min(4+int(b[3]), len(b))]
			b = b[4+len(body):]
			switch {
			case kind >= 0xc0 && kind < 0xd0:
				v.inject(flagged(v.message(wire.Type(kind&0xf), socket, seq, body...), 1))
			case kind < 0xc0:
				v.inject(v.message(wire.Type(kind), socket, seq, body...))
			case kind == 0xd0 && len(v.in) > 0:
				v.send(v.side, v.in[int(socket)%len(v.in)], fl, int(seq)*100, 0)
			case kind == 0xd1 && len(v.in) > 0:
				v.e.CloseSocket(v.now, v.in[int(socket)%len(v.in)])
			case kind == 0xd3 && len(v.in) > 0:
				v.e.SetGet(v.in[int(socket)%len(v.in)], true)
				v.send(v.side, v.in[int(socket)%len(v.in)], fl, 2000+int(seq)*10, 1)
			case kind == 0xd4 && len(v.in) > 0:
				v.e.Cancel(v.in[int(socket)%len(v.in)], 1)
			case kind == 0xd5:
				v.side.mem.fail = !v.side.mem.fail
			case kind == 0xd2:
				v.e.Open(1, "y", nil)
			case kind == 0xe0 && len(body) >= 4:
				v.final(binary.LittleEndian.Uint32(body), socket)
			case kind >= 0xf0:
				v.inject(body)
			}
			v.e.Flush(v.now)
		}
		v.side.mem.fail = false
		if v.failed != nil && !errors.Is(v.failed, ErrProtocol) && !errors.Is(v.failed, ErrPeerClosed) {
			t.Fatalf("failed with %v", v.failed)
		}
		v.end()
		for i, err := range fl.ended {
			if err == errPending {
				t.Fatalf("message %d never ended", i)
			}
		}
	})
}
