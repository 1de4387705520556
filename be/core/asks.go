package core

import "math/bits"

// askSlots is how many rounds of asks there are places for.
const askSlots = 64

// asks has the sockets whose next message is large, to be asked for. They come in the order
// of the bytes that they asked for, divided by their weights, in rounds like those of the
// scheduler: where credits hold up what is asked for, that is what each gets to write. Within
// a round they take turns.
type asks struct {
	slots *[askSlots]line // nil: there is one socket at most, in lone
	lone  line            // stands for all slots
	due   uint64          // slots that are not empty
	round uint64          // no socket's turn is in an earlier one
	n     int32           // sockets in it
}

// shareOf is what n bytes count of a socket's share.
func (s *Socket) shareOf(n int) uint64 {
	cost := uint64(n) << weightBits
	if s.weight > 1 {
		cost /= uint64(s.weight)
	}
	return cost
}

func (a *asks) slot(i uint8) *line {
	if a.slots == nil {
		return &a.lone
	}
	return &a.slots[i]
}

// asksAt reports whether a socket waits here, by its place for what it begins.
func asksAt(at uint8) bool { return at >= asksSlot && at < asksSlot+askSlots }

// push has a socket wait. Alone, it is in the present round: nobody saves up.
func (a *asks) push(s *Socket, shift uint8) {
	off := uint64(0)
	if a.n > 0 {
		if a.slots == nil {
			a.slots = new([askSlots]line)
			lone := a.lone.head
			a.lone = line{}
			a.slots[lone.at[starts]-asksSlot].push(starts, lone)
		}
		s.asked = max(s.asked, a.round<<shift)
		off = min(s.asked>>shift-a.round, askSlots-1)
	}
	i := uint8((a.round + off) % askSlots)
	a.slot(i).push(starts, s)
	a.due |= 1 << i
	a.n++
	s.at[starts] = asksSlot + i
}

func (a *asks) remove(s *Socket) {
	i := s.at[starts] - asksSlot
	l := a.slot(i)
	if l.remove(starts, s); l.head == nil {
		a.due &^= 1 << i
	}
	a.n--
	s.at[starts] = 0
}

// first is the socket whose turn it is, nil if none waits.
func (a *asks) first(shift uint8) *Socket {
	for a.n > 0 {
		a.round += uint64(bits.TrailingZeros64(bits.RotateLeft64(a.due, -int(a.round%askSlots))))
		s := a.slot(uint8(a.round % askSlots)).head
		if a.n == 1 || s.asked>>shift <= a.round {
			return s
		}
		a.remove(s) // its turn was further away than there are slots
		a.push(s, shift)
	}
	return nil
}

// spend counts n bytes that a socket asked for that waits no more.
func (a *asks) spend(s *Socket, n int, shift uint8) {
	if a.n == 0 {
		return
	}
	s.asked = max(s.asked, a.round<<shift) + s.shareOf(n)
}

// refund takes back n bytes of what a socket asked for, that it does not send.
func (a *asks) refund(s *Socket, n int) {
	s.asked -= min(s.asked, s.shareOf(n))
}
