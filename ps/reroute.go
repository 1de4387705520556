package ps

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/pkg/errors"
)

// A shard that has another map than a request refuses its part of it. When all parts are
// back, and nothing else went wrong, the request goes on.
//
// What a shard with a newer map refused, no replica of it applied or ever will: the client
// gets the newer map, and the keys of the part, which are still in its request, are split
// anew into further parts, with ids of their own. What a shard with an older map refused, a
// copy of the same request may yet be applied when it has the newer one: the part is sent
// again as it was. A part that was answered is not sent again.

const (
	firstPause = time.Millisecond // before a shard is asked again that has an older map
	lastPause  = 50 * time.Millisecond
	// waitOlder is how long a request without a deadline waits for client and shard to get
	// the same map.
	waitOlder = 10 * time.Second
	// maxFollowed is how many maps a request goes on by: changes take longer than requests,
	// and a shard that has a newer one each time is out of order.
	maxFollowed = 64
)

func (f *fanout) setDeadline(timeout time.Duration) {
	f.deadline, f.pause, f.waits = time.Time{}, firstPause, time.Time{}
	if f.client.follower != nil && timeout > 0 {
		f.deadline = time.Now().Add(timeout)
	}
}

// unreached tells whether no replica of the shard could be reached in the end, and
// whether none ever was.
func (p *part) unreached() (in, ever bool) {
	e, is := p.err.(*channel.Error) //nolint:errorlint // channels do not wrap it
	in = is && e.Unreached()
	return in, in && e.Attempts == 0
}

// goesOn tells whether the request goes on by itself though all parts are back.
func (f *fanout) goesOn() bool {
	if f.client.follower == nil {
		return false
	}
	again := false
	for _, p := range f.parts {
		if !p.waits() {
			continue
		}
		_, refused := p.err.(*WrongMapError) //nolint:errorlint // take made it
		if in, _ := p.unreached(); !in && !refused {
			return false
		}
		again = true
	}
	return again && f.failure == nil && f.client.follower.spawn(f.resume)
}

// resume waits until something has changed, and sends again what was not answered.
func (f *fanout) resume() {
	stop := make(chan struct{})
	f.mu.Lock()
	f.failure = f.gaveUp
	f.stop = stop
	f.mu.Unlock()
	if f.failure == nil {
		f.failure = f.await(stop)
	}
	if f.failure == nil {
		f.failure = f.sendAgain()
	}
	if f.failure != nil {
		f.over()
	} else {
		f.finish()
	}
}

// await waits for a newer map, or for a while if a shard has an older one.
func (f *fanout) await(stop <-chan struct{}) error {
	had, follower := f.layout, f.client.follower
	if f.client.layout.Load() != had {
		return nil
	}
	from, why := (*way)(nil), error(nil)
	ask, older := false, false
	for _, p := range f.parts {
		if !p.waits() {
			continue
		}
		why = f.shardError(p, p.err)
		switch wrong, is := p.err.(*WrongMapError); { //nolint:errorlint // take made it
		case p.moves(had):
			return nil
		case is && wrong.Version <= p.version:
			older = true
		case is:
			ask, from = true, p.way
		default:
			ask = true
		}
	}
	var expired <-chan time.Time
	if !f.deadline.IsZero() {
		timer := time.NewTimer(time.Until(f.deadline))
		defer timer.Stop()
		expired = timer.C
	}
	ended := func(code archon.Code) error {
		message := fmt.Sprintf("ps: client and shard did not get the same map: the client has version %d", had.version())
		if err := follower.whyNot(); err != nil {
			message += fmt.Sprintf(", and got no other one: %v", err)
		}
		return &archon.Error{Code: code, Message: message, Cause: why}
	}
	wait := func(until <-chan struct{}, pause <-chan time.Time) error {
		select {
		case <-had.replaced:
			f.pause, f.waits = firstPause, time.Time{}
		case <-until:
		case <-pause:
		case <-stop:
			return ended(archon.CodeOf(f.gaveUp))
		case <-follower.life.Done():
			return errClientClosed
		case <-expired:
			return ended(archon.DeadlineExceeded)
		}
		return nil
	}
	if f.waits.IsZero() {
		f.waits = time.Now()
	}
	if ask {
		if err := wait(follower.ask(from), nil); err != nil || f.client.layout.Load() != had {
			return err
		}
		if from == nil && !older {
			return why // nobody knows where the shard is
		}
	}
	if f.deadline.IsZero() && time.Since(f.waits) >= waitOlder {
		return ended(archon.DeadlineExceeded)
	}
	pause := time.NewTimer(f.pause)
	defer pause.Stop()
	f.pause = min(2*f.pause, lastPause)
	return wait(nil, pause.C)
}

// sendAgain sends what was not answered, by the newest map. left stays above 0 until
// the caller has finished too.
func (f *fanout) sendAgain() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop = nil
	if f.gaveUp != nil {
		return f.gaveUp
	}
	if l := f.client.acquire(); l != f.layout {
		if len(f.held) == maxFollowed {
			f.client.release(l)
			return &archon.Error{Code: archon.Aborted, Message: fmt.Sprintf("ps: the map changed %d times while the request followed it", maxFollowed), Cause: f.err()}
		}
		f.held = append(f.held, f.layout)
		f.layout = l
	} else {
		f.client.release(l)
	}
	timeout := time.Duration(0)
	if !f.deadline.IsZero() {
		timeout = max(time.Until(f.deadline), 1)
	}
	if err := f.reroute(); err != nil {
		return err
	}
	f.left.Store(1)
	for _, p := range f.parts {
		if p.waits() {
			p.err = nil
			f.left.Add(1)
			p.way.send(p, f.method, timeout)
		}
	}
	return nil
}

// errUnsent is of parts that are about to be sent.
var errUnsent = errors.New("ps: not sent yet")

// anew tells whether a part that was not answered may go anywhere: the shard did not
// apply it, and never will.
func (p *part) anew() bool {
	if wrong, is := p.err.(*WrongMapError); is { //nolint:errorlint // take made it
		return wrong.Version > p.version
	}
	_, never := p.unreached()
	return p.fanout.method == MethodFetch || never
}

// moves tells whether the part's keys are to be split by the layout.
func (p *part) moves(l *layout) bool {
	return p.waits() && p.version != l.version() && p.anew()
}

// reroute readies what was not answered to be sent by the layout. A push that the shard
// may have applied goes to the same shard, under the same id, also to one that is in the
// map no more: its way is held.
func (f *fanout) reroute() error {
	if err := f.splitAgain(); err != nil {
		return err
	}
	for _, p := range f.parts {
		if p.waits() && p.shard < len(f.layout.ways) {
			p.way = f.layout.ways[p.shard]
		}
	}
	return nil
}

// splitAgain moves the keys of the parts that are to be split to further ones.
func (f *fanout) splitAgain() error {
	l, first := f.layout, len(f.parts)
	if !slices.ContainsFunc(f.parts, func(p *part) bool { return p.moves(l) }) {
		return nil
	}
	if first == 1 {
		f.places = f.places[:0]
		for i := range f.parts[0].count {
			f.places = append(f.places, place{0, uint32(i)})
		}
	}
	moved := slices.Clone(f.places)
	further := map[int]int{} // parts by shard
	for i, at := range f.places {
		p := f.parts[at.part]
		if !p.moves(l) {
			continue
		}
		shard := l.owner(p.key(int(at.pos)))
		n, is := further[shard]
		if !is {
			n = len(f.parts)
			further[shard] = n
			f.grow(n + 1)
			f.parts[n].begin(l, shard)
			f.parts[n].err = errUnsent
		}
		moved[i] = place{uint32(n), uint32(f.parts[n].count)}
		f.parts[n].count++
	}
	for _, p := range f.parts[first:] {
		if err := f.allocPart(p); err != nil {
			err = f.shardError(p, err)
			f.grow(first)
			return err
		}
		if f.method == MethodPush {
			p.number(false)
		}
	}
	for i, at := range f.places {
		if to := moved[i]; to != at {
			f.parts[to.part].copyKey(int(to.pos), f.parts[at.part], int(at.pos))
		}
	}
	f.places = moved
	for _, p := range f.parts[:first] {
		if p.moves(l) {
			p.count, p.err = 0, nil
		}
	}
	return nil
}

// key gives a key of the part from its request.
func (p *part) key(pos int) uint64 {
	return binary.LittleEndian.Uint64(p.request[p.fanout.header+8*pos:])
}

// copyKey takes a key, with what belongs to it, from another part's request.
func (p *part) copyKey(pos int, from *part, at int) {
	f := p.fanout
	copy(p.request[f.header+8*pos:][:8], from.request[f.header+8*at:])
	to, old := f.header+8*p.count+f.extra*pos, f.header+8*from.count+f.extra*at
	copy(p.request[to:to+f.extra], from.request[old:])
}

// errGone is of a part that may have been applied by a shard that the map has no more: it is
// not sent again, to nobody, from then on.
var errGone = archon.Errorf(archon.OutOfRange, "the map has the shard no more, and whether it applied its part of the push is not known: fetch the rows to see")

// waits tells whether the part has keys, and is to be sent again.
func (p *part) waits() bool { return p.count > 0 && p.err != nil && p.err != errGone } //nolint:errorlint // again sets it

// again repeats a push that failed: what was applied is not sent.
func (f *fanout) again(timeout time.Duration) {
	f.layout, f.failure, f.gaveUp = f.client.acquire(), nil, nil
	f.setDeadline(timeout)
	for _, p := range f.parts {
		if p.waits() && p.shard >= len(f.layout.ways) && !p.moves(f.layout) {
			p.err = errGone
		}
	}
	if f.failure = f.sendAgain(); f.failure != nil {
		f.over()
		return
	}
	f.finish()
}
