package ps

import (
	"context"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/pkg/errors"
)

// link sends a replica's log to one peer, and asks it for leases.
type link struct {
	r      *Replica
	peer   int
	more   chan struct{} // there is something to send
	client *archon.Client
	buf    []byte
	call   archon.Call
	wake   chan struct{}
	done   func(*archon.Call) // bound once
}

// hurry ends the link's pause.
func (l *link) hurry() {
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *link) run() {
	pause := l.r.cfg.Lease / 8
	timer := time.NewTimer(pause)
	defer timer.Stop()
	defer func() {
		if l.client != nil {
			l.client.Close()
			<-l.client.Done()
		}
	}()
	for {
		ok := l.exchange()
		timer.Reset(pause)
		more := l.more
		if !ok {
			more = nil
		}
		select {
		case <-l.r.stop:
			return
		case <-more:
		case <-timer.C:
		}
	}
}

// exchange sends one request, and copies the peer if that is due. It tells whether the
// next may follow at once.
func (l *link) exchange() bool {
	r, s := l.r, l.r.shard
	sent, err := l.send()
	source, stuck := -1, false
	s.mu.Lock()
	if err == nil {
		err = r.group.reply(l.peer, l.call.Response.Payload(), sent)
		stuck = r.group.peers[l.peer].acked < uptoOf(l.buf) // it does not take what was sent
		l.call.Response.Release()
	}
	if err != nil {
		r.group.failed(l.peer, r.now())
	} else {
		source = r.group.source()
	}
	r.note()
	s.mu.Unlock()
	if err == nil && source == l.peer {
		if err = l.copy(); err != nil {
			s.mu.Lock()
			r.group.trouble = errors.WithMessagef(err, "copy replica %d", source)
			s.mu.Unlock()
		}
	}
	if err != nil && l.client != nil {
		l.client.Close()
		<-l.client.Done()
		l.client = nil
	}
	return err == nil && !stuck
}

// send sends a request and waits for its answer, for a quarter of the lease.
func (l *link) send() (sent time.Duration, err error) {
	r := l.r
	timeout := r.cfg.Lease / 4
	if l.client == nil {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if l.client, err = archon.Dial(ctx, r.cfg.Transport, r.cfg.Peers[l.peer], "ps", archon.ClientConfig{}); err != nil {
			l.client = nil
			return 0, err
		}
	}
	r.shard.mu.Lock()
	sent = r.now()
	l.buf = r.group.request(l.buf[:0], l.peer)
	r.shard.mu.Unlock()
	l.call = archon.Call{Method: methodReplicate, Timeout: timeout}
	if l.call.Request, err = l.client.Alloc(len(l.buf)); err != nil {
		return 0, err
	}
	copy(l.call.Request.Payload(), l.buf)
	if err := l.client.Go(&l.call, l.done); err != nil {
		return 0, err
	}
	<-l.wake
	return sent, l.call.Err
}

// copyTimeout bounds how long a copy may take.
const copyTimeout = 10 * time.Minute

// copy makes this replica what the peer is.
func (l *link) copy() error {
	r, s := l.r, l.r.shard
	ctx, cancel := context.WithTimeout(context.Background(), copyTimeout)
	defer cancel()
	go func() {
		select {
		case <-r.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	stream, err := l.client.Open(ctx, &archon.Invocation{Method: methodSnapshot})
	if err != nil {
		return err
	}
	defer stream.Close()
	in := &streamReader{stream: stream}
	defer in.last.Release()
	head, err := readCopyHead(in)
	if err != nil {
		return err
	}
	s.mu.RLock()
	is := s.own
	s.mu.RUnlock()
	if head.next != nil && (is.m == nil || is.m.By != head.next.By) {
		return errors.Errorf("it has map version %d, which this shard cannot take", head.next.Version)
	}
	c, err := s.read(in, is, &head)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if !r.group.joining || s.closed {
		s.mu.Unlock()
		c.table.free()
		return nil
	}
	old := r.group.install(c, l.peer, &head, r.now())
	r.note()
	s.mu.Unlock()
	old.loans.close(old.free)
	return nil
}

// streamReader reads the messages of a stream as bytes.
type streamReader struct {
	stream *archon.Stream
	last   archon.Response
	rest   []byte
}

func (r *streamReader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		r.last.Release()
		var err error
		if r.last, err = r.stream.Recv(); err != nil {
			r.last = archon.Response{}
			return 0, err
		}
		r.rest = r.last.Payload()
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// streamWriter writes bytes as messages of a stream.
type streamWriter struct{ out *archon.Sender }

func (w streamWriter) Write(b []byte) (int, error) {
	m, err := w.out.Alloc(len(b))
	if err != nil {
		return 0, err
	}
	copy(m.Payload(), b)
	if err := w.out.Send(m); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (r *Replica) handleSnapshot(_ *archon.ServerCall, out *archon.Sender) error {
	s := r.shard
	s.mu.Lock()
	if s.closed || r.group.joining {
		s.mu.Unlock()
		return errJoining
	}
	head := r.group.head()
	m := s.image(head.brought())
	s.mu.Unlock()
	defer m.release()
	w := streamWriter{out}
	if _, err := w.Write(head.append(nil)); err != nil {
		return err
	}
	return m.write(w)
}
