package nic

import "github.com/byteexpress/byteexpress/sim/dma"

// segment is a piece of memory of one region; a nil region is memory that the
// NIC owns (inline payload).
type segment struct {
	region *Region
	b      []byte
}

// Payload refers to the bytes that a packet carries, in the sender's memory.
type Payload struct {
	lease *lease // of the requester that owns the memory; nil for a responder's
	off   int    // first byte of the payload in the memory
	n     int
	one   segment   // the memory, if it is one piece
	many  []segment // or else its pieces
}

// BytesPayload makes a payload of bytes that nobody changes while the packet
// lives, as from a datagram.
func BytesPayload(b []byte) Payload { return Payload{one: segment{b: b}, n: len(b)} }

// Len is the payload's length in bytes.
func (p *Payload) Len() int { return p.n }

// AppendTo appends the payload's bytes to b. It reports false if the sender took
// the memory back; the packet is then as good as lost. It is for requests that a
// fabric encodes inside Send, and for responses.
func (p *Payload) AppendTo(b []byte) (out []byte, ok bool) {
	at := len(b)
	out = append(b, make([]byte, p.n)...)
	d := scatter{segs: []segment{{b: out[at:]}}}
	ok, _ = p.copyTo(&d)
	return out, ok
}

// copyTo makes the one copy of the payload, to d. ok is false if the memory was
// taken back; idle is true when this was the last reader of a revoked lease, whose
// owner then waits to be told.
func (p *Payload) copyTo(d *scatter) (ok, idle bool) {
	if p.n == 0 {
		return true, false
	}
	if p.lease == nil {
		return p.copyPieces(d), false
	}
	if !p.lease.acquire() {
		return false, false
	}
	ok = p.copyPieces(d)
	return ok, p.lease.release()
}

func (p *Payload) copyPieces(d *scatter) (ok bool) {
	if p.many == nil {
		return p.one.copyTo(d, p.off, p.n)
	}
	// Neighbours are mostly of one region: it is held over all of them, as taking
	// it for each would cost more than copying a short piece.
	var held *Region
	off, n := p.off, p.n
	for i := range p.many {
		s := &p.many[i]
		if off >= len(s.b) {
			off -= len(s.b)
			continue
		}
		if s.region != held {
			held.letGo()
			if held = s.region; held != nil && !held.acquire() {
				return false
			}
		}
		k := min(n, len(s.b)-off)
		d.write(s.b[off : off+k])
		if n, off = n-k, 0; n == 0 {
			break
		}
	}
	held.letGo()
	return true
}

func (s *segment) copyTo(d *scatter, off, n int) bool {
	if s.region != nil && !s.region.acquire() {
		return false
	}
	d.write(s.b[off : off+n])
	s.region.letGo()
	return true
}

// letGo releases a region, if it is one.
func (r *Region) letGo() {
	if r != nil {
		r.release()
	}
}

// scatter is a place in a receiver's list of segments that fills up.
type scatter struct {
	dma  *dma.Engine // that writes it; nil: a plain copy
	segs []segment
	i    int // segment
	off  int // in it
}

// seek goes to byte off of the list.
func (d *scatter) seek(off int) {
	d.i, d.off = 0, off
	for d.i < len(d.segs) && d.off >= len(d.segs[d.i].b) {
		d.off -= len(d.segs[d.i].b)
		d.i++
	}
}

// write copies b to the place and moves on. The caller made sure that it fits.
func (d *scatter) write(b []byte) {
	for len(b) > 0 {
		s := d.segs[d.i].b
		k := min(len(b), len(s)-d.off)
		if at := s[d.off:][:k]; d.dma != nil {
			d.dma.Copy(at, b[:k])
		} else {
			copy(at, b)
		}
		b, d.off = b[k:], d.off+k
		if d.off == len(s) {
			d.i, d.off = d.i+1, 0
		}
	}
}
