package ps

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/pkg/errors"
)

// RebalanceConfig sets Rebalance up. The zero value works.
type RebalanceConfig struct {
	// Transport reaches the replicas at the TCP addresses of the maps; nil: archon.TCP{}.
	Transport archon.Transport
	// Timeout is how long the answer of a replica is waited for; 0: 250 ms. Of rows that
	// move, pushes wait for about as long if a replica fails in that moment.
	Timeout time.Duration
	// Freeze is after how long pushes go on by themselves if this process dies before the
	// change is decided; 0: 1 s.
	Freeze time.Duration
}

// Rebalance changes the map of a table while its shards serve: rows move to the shards
// that own them by the map to, which is to have a higher version than from, the one in
// force. It returns when the new map is in force everywhere. It tries until ctx is
// done; the error says what it waits for. Until a change is decided an error leaves
// everything as it was; from then on, which the error says, the same call completes it,
// as it does after this process died: it may be made again at any time, and by several at
// once. Of different changes at the same time one is made, and the others are refused.
//
// All replicas of the shards between which keys move have to be up, and those of other
// shards, one each. All have TCP addresses in the maps, at which clients are served too. Each is one of a Shard with a Map ([Shard.Replicate]), also if it is
// the only one. New shards begin with the map from, in which they have no number yet, and
// so no keys; those that have no keys by the map to may be stopped after a while, when
// clients have it.
//
// While rows move, fetches and pushes go on. In the end pushes to keys that move wait
// for some round trips, then fetches of them, and clients follow the new map.
func Rebalance(ctx context.Context, from, to *Map, cfg RebalanceConfig) error {
	if cfg.Transport == nil {
		cfg.Transport = archon.TCP{}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 250 * time.Millisecond
	}
	if cfg.Freeze == 0 {
		cfg.Freeze = time.Second
	}
	if cfg.Timeout < time.Millisecond || cfg.Freeze < cfg.Timeout {
		return errors.Errorf("ps: rebalance with a timeout of %v and a freeze of %v: 1 ms at least, and the freeze is not shorter", cfg.Timeout, cfg.Freeze)
	}
	var nonce [4]byte
	rand.Read(nonce[:]) // never fails
	c, err := newCoordinator(from, to, binary.LittleEndian.Uint32(nonce[:]), cfg.Freeze)
	if err != nil {
		return err
	}
	d := &rebalancer{c: c, cfg: cfg, lines: make([]line, len(c.members))}
	defer d.close()
	return d.run(ctx)
}

// rebalancer does what a coordinator says.
type rebalancer struct {
	c     *coordinator
	cfg   RebalanceConfig
	lines []line
}

// line is the connection to a member. One request at a time uses it.
type line struct {
	client *archon.Client // nil: none
}

func (d *rebalancer) run(ctx context.Context) error {
	c := d.c
	for c.phase != phaseDone {
		d.round(ctx)
		if ctx.Err() != nil {
			break
		}
		pause, err := c.judge()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	if c.phase == phaseDone {
		return nil
	}
	why := c.why
	if why == nil {
		why = errors.New("there was no time for it")
	}
	e := &archon.Error{Code: archon.CodeOf(ctx.Err()), Message: "ps: rebalance: the change is decided, and not complete: rebalance again", Cause: why}
	if c.decided != 0 {
		return e
	}
	e.Message = "ps: rebalance: the change is given up"
	if c.ticket != 0 {
		c.enter(phaseAbort)
		d.round(context.WithoutCancel(ctx))
	}
	return e
}

// round sends a round's requests, and takes the answers. It does not wait long for those
// that did not answer the last time, when the others have.
func (d *rebalancer) round(ctx context.Context) {
	type answer struct {
		member int
		prompt bool // it answered the last time
		state  changeState
		err    error
	}
	c := d.c
	list := c.round()
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	answers := make(chan answer, len(list))
	expected := 0
	var all sync.WaitGroup
	for left := list; len(left) > 0; {
		member, n := left[0].member, 1
		for n < len(left) && left[n].member == member {
			n++
		}
		mine := left[:n] // to one member, one after the other
		left = left[n:]
		prompt, addr := c.members[member].missed == 0, c.members[member].addr
		if prompt {
			expected += n
		}
		all.Go(func() {
			for i := range mine {
				st, err := d.lines[member].ask(ctx, d.cfg.Transport, addr, &mine[i].req)
				answers <- answer{member, prompt, st, err}
			}
		})
	}
	for range list {
		if expected == 0 {
			time.AfterFunc(d.cfg.Timeout/8, cancel)
			expected = -1
		}
		a := <-answers
		if a.prompt {
			expected--
		}
		if a.err != nil {
			c.lost(a.member, a.err)
		} else {
			c.took(a.member, a.state)
		}
	}
	all.Wait()
}

// ask sends a request and waits for the answer.
func (l *line) ask(ctx context.Context, t archon.Transport, addr string, r *changeRequest) (st changeState, err error) {
	if l.client == nil {
		if l.client, err = archon.Dial(ctx, t, addr, "ps", archon.ClientConfig{}); err != nil {
			l.client = nil
			return st, err
		}
	}
	resp, err := l.client.Do(ctx, &archon.Invocation{Method: methodChange, Request: archon.Bytes(r.append(nil))})
	if err != nil {
		l.hangUp()
		return st, err
	}
	defer resp.Release()
	return parseChangeState(resp.Payload())
}

func (l *line) hangUp() {
	if l.client != nil {
		l.client.Close()
		<-l.client.Done()
		l.client = nil
	}
}

func (d *rebalancer) close() {
	for i := range d.lines {
		d.lines[i].hangUp()
	}
}
