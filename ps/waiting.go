package ps

import (
	"encoding/binary"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// waiting is the fetches and pushes of a server that wait for a change of the map, each on
// a worker. They are bounded, so that workers are left for rows that do not move, however
// long the change takes. The shard's lock guards it.
type waiting struct {
	r    *Replica
	now  int
	most int
}

// errCrowded is what is refused beyond that. Its code has clients of a map ask again
// after a pause, until their deadline, and costs none of what they have for retries.
var errCrowded = archon.Errorf(archon.Aborted, "the map is changing, and as many requests wait for that here as may: retry")

// crowdedVersion is the version of a map that such a refusal of a well-formed request names,
// of a shard that has one: to the client that of an older one, since a copy of the request
// may be applied later.
func crowdedVersion(payload []byte, version uint32) uint32 {
	return min(version, binary.LittleEndian.Uint32(payload[12:]))
}

// wait waits until something has changed. The caller holds the shard's lock.
func (w *waiting) wait() error {
	if w.now == w.most {
		return errCrowded
	}
	w.now++
	w.r.changed.Wait()
	w.now--
	return nil
}

// fetch waits until rows may be fetched, for a while.
func (w *waiting) fetch(call *archon.ServerCall) error {
	r := w.r
	for end := r.now() + 2*r.cfg.Lease; ; {
		if err := r.ready(); err != nil {
			return err
		}
		err := r.shard.fetch(call)
		if !waitsForMap(err) || r.now() > end {
			return err
		}
		r.shard.mu.Lock()
		if err = nil; r.shard.own.before != nil {
			err = w.wait()
		}
		r.shard.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// push applies a push, and waits until it is where it has to be.
func (w *waiting) push(call *archon.ServerCall) error {
	r := w.r
	if err := bornAhead(call.Payload(), time.Now()); err != nil {
		return err
	}
	s := r.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	pos, err := uint64(0), error(nil)
	for end := r.now() + 2*r.cfg.Lease; ; {
		if err = r.readyLocked(); err != nil {
			return err
		}
		if pos, err = r.group.push(call.Payload(), r.now()); err == nil {
			break
		}
		if !waitsForMap(err) || r.now() > end {
			return err
		}
		if err = w.wait(); err != nil {
			return err
		}
	}
	for i, l := range r.links {
		if i != r.cfg.Self {
			l.hurry()
		}
	}
	for end := r.now() + 8*r.cfg.Lease; !r.group.settled(pos, r.now()); {
		if r.now() > end {
			return errNotTaken
		}
		if r.closed() {
			return errReplicaClosed
		}
		r.changed.Wait()
	}
	return nil
}
