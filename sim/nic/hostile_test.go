package nic

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// packetSize is how many bytes of fuzz input make a packet.
const packetSize = 24

// packetOf makes any packet at all out of bytes, with the connection's addresses.
func packetOf(b []byte, q *QP, area uint64) *Packet {
	p := &Packet{SGID: q.attr.AV.DGID, DGID: q.sgid, GIDType: q.sgType, DestQP: q.num}
	p.Op, p.Syndrome = Op(b[0]%numOps), Syndrome(b[1])
	base := q.recvPSN
	if p.Op.flags()&isResponse != 0 {
		base = q.unaPSN
	}
	p.PSN = base.Add(uint32(int8(b[2])) & uint32(qp.PSNMask))
	p.AckReq, p.Solicited, p.MTU = b[3]&1 != 0, b[3]&2 != 0, qp.MTU(b[3]>>4)
	p.RKey = q.nic.keys.slots[0].region.RKey
	if b[22]&2 != 0 {
		p.RKey = q.nic.windows.bySlot[0].rkey
	}
	if b[3]&4 != 0 {
		p.RKey ^= 1
	}
	p.Length = binary.LittleEndian.Uint32(b[4:])
	if b[3]&8 != 0 {
		p.Length &= 0x1fff
	}
	p.Addr = area + binary.LittleEndian.Uint64(b[8:])
	p.Compare, p.Swap, p.Imm = uint64(b[16]), uint64(b[17]), uint32(b[18])
	// Not zeros, which could be written anywhere unseen.
	p.Payload = BytesPayload(bytes.Repeat([]byte{0xa5}, int(binary.LittleEndian.Uint16(b[20:]))%9000))
	if b[22]&1 != 0 {
		p.Payload.n = min(p.Payload.n, 1024)
	}
	return p
}

// FuzzPackets feeds a NIC with packets of a hostile peer, while it has requests
// and receives of its own. Whatever comes: no panic, no byte outside the region
// that the peer may write, each request completes at most once.
func FuzzPackets(f *testing.F) {
	seed := func(packets ...[packetSize]byte) {
		var b []byte
		for _, p := range packets {
			b = append(b, p[:]...)
		}
		f.Add(b)
	}
	for op := range byte(numOps) {
		seed([packetSize]byte{0: op, 3: 9, 4: 64, 20: 64})
		seed([packetSize]byte{0: op, 3: 9, 4: 64, 20: 64}, [packetSize]byte{0: op, 2: 0xff, 3: 1, 4: 0xff, 5: 0xff, 8: 0xff})
	}
	seed([packetSize]byte{0: byte(OpSendFirst), 20: 0, 21: 4}, [packetSize]byte{0: byte(OpSendLast), 3: 1, 20: 7})
	seed([packetSize]byte{0: byte(OpWriteFirst), 3: 8, 5: 8, 20: 0, 21: 4}, [packetSize]byte{0: byte(OpWriteLastImm), 3: 1, 20: 0, 21: 4})
	// Through the window, at its ends and beyond, and its end.
	for _, off := range []byte{0x13, 0x14, 0x17, 0x18} {
		write := [packetSize]byte{0: byte(OpWriteOnly), 3: 8, 5: 1, 9: off, 21: 1, 22: 2}
		write[8] = 0xc0
		seed(write, [packetSize]byte{0: byte(OpSendOnlyInv), 20: 8, 22: 2}, [packetSize]byte{0: byte(OpSendLastInv), 2: 1, 22: 2})
		write[8] = 0
		seed(write)
	}
	for syn := range byte(8) {
		seed([packetSize]byte{0: byte(OpAck), 1: syn << 5}, [packetSize]byte{0: byte(OpAck), 1: syn<<5 | 2, 2: 1})
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, segment := range []bool{true, false} {
			v := newNet(t, 1)
			set := func(c *Config) { c.Segment = segment }
			x, y := v.pairOf(v.add(set), v.add(set), 3*4096, nil)
			v.filter = func(*Packet) bool { return false } // the peer is the input alone
			// Only the middle page may be touched by the peer.
			open := x.register(x.buf[4096:8192], rights)
			x.h.nic.keys.slots[0].region = open
			open.RKey, open.LKey = x.reg.RKey, x.reg.LKey
			lent := x.register(x.buf[8192:], mr.LocalWrite|mr.WindowBind)
			w, err := x.h.nic.CreateWindow(x.pd)
			if err != nil {
				t.Fatal(err)
			}
			if st := x.h.nic.bindWindow(x.q, w.rkey, &qp.Bind{Region: lent.LKey, Addr: lent.Addr + 1024, Length: 1024, Access: mr.RemoteWrite, RKey: w.rkey.Next()}); st != cq.Success {
				t.Fatal(st)
			}
			for i := range 4 {
				x.recv(qp.RecvWR{ID: 100 + uint64(i), SGEs: []qp.SGE{{Addr: open.Addr, Length: 2000, LKey: open.LKey}}})
				ops := []qp.SendWR{y.remote(qp.Write, nil), y.remote(qp.Read, nil), y.remote(qp.FetchAdd, nil), y.remote(qp.Send, nil)}
				wr := ops[i]
				n := uint32(2000)
				if wr.Opcode.IsAtomic() {
					n = 8
				}
				wr.ID, wr.SGEs = uint64(i), []qp.SGE{{Addr: open.Addr, Length: n, LKey: open.LKey}}
				x.send(wr)
			}
			seen := map[uint64]bool{}
			for in := in; len(in) >= packetSize; in = in[packetSize:] {
				x.h.nic.Deliver(v.now, packetOf(in, x.q, open.Addr))
				x.h.run()
				for _, c := range x.poll() {
					if seen[c.ID] {
						t.Fatalf("request %d completed twice", c.ID)
					}
					seen[c.ID] = true
				}
			}
			for i := range 4096 {
				if x.buf[i] != 0 || x.buf[8192+i] != 0 && i>>10 != 1 {
					t.Fatal("a byte outside the region changed")
				}
			}
			// Whatever happened, an orderly end gives back everything once.
			if err := x.h.nic.Modify(x.q, &qp.Attr{State: qp.Err}, qp.MaskState); err != nil {
				t.Fatal(err)
			}
			for _, c := range x.poll() {
				if seen[c.ID] || c.Status != cq.WRFlushError && c.Status == cq.Success {
					t.Fatalf("request %d again, or not flushed: %v", c.ID, c.Status.Name())
				}
				seen[c.ID] = true
			}
			for _, id := range []uint64{100, 101, 102, 103} {
				if !seen[id] {
					t.Fatalf("receive %d is lost", id)
				}
			}
		}
	})
}
