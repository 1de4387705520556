package be

import "testing"

// TestReceiveOfDrainedEngine: an engine drains while a batch of completions is worked on,
// and still has messages to deliver. A shared receive that is in the batch for it is posted
// again for others.
func TestReceiveOfDrainedEngine(t *testing.T) {
	d := newInstantShared(t, 2, 2*DefaultRecvDepth)
	gone := d.peers[1].sock.conn
	d.peers[0].sock.OnMessage(func(b []byte, err error) {
		if err == nil {
			gone.Drained(nil)
			gone.n.Free(b)
		}
	})
	d.turn()
	d.peers[0].announce(64)
	d.peers[1].announce(64)
	posted := d.srq.posted
	d.turn()
	if n := gone.n.strays.Load(); n != 1 || d.srq.posted == posted {
		t.Errorf("%d completions went astray, %d receives were posted", n, d.srq.posted-posted)
	}
}
