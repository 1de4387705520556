package be

// SetGet chooses how large messages of this side travel. Off, as at first, the
// peer gives an address and this side writes there: the shortest way. On, this side
// offers the message and the peer reads it, when it has memory and its own window
// (Config.WindowBytes) has room: so a node to which many send decides how much comes
// in at once. ErrUnsupported if the peer does not know get mode, or one of the devices
// no READs.
//
// To be read, a message must lie in memory that peers may read: that is what the
// node's Alloc gives, for messages of that length, from the first SetGet(true) on any
// of its sockets on, as long as Config.PoolBytes has room for it. A buffer from before,
// one that Recv gave, and the messages of PostGather are written, as without get mode;
// Stats counts them as Rendezvous, and what the peer read as Offered.
//
// A message that is given up after it was offered may still be delivered, whole,
// and its memory returns only when the peer reads it no more.
func (s *Socket) SetGet(on bool) error {
	if on && !s.conn.e.CanGet() {
		return s.wrap(ErrUnsupported)
	}
	if on {
		s.conn.n.mem.offer(s.conn.eager)
	}
	return s.set(func() { s.core.Engine().SetGet(s.core, on) })
}
