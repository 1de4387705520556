package be_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testmodel"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
)

// TestPackedContentsInAStorm: 32 goroutines of a node send short messages, and a few long
// ones, to three others, whose engines share slots, with configurations drawn at random, give
// some up, and close their sockets and dial anew. What arrives is what was sent, byte by byte, and in
// order; what was sent well arrives, unless the other side closed or a queue pair broke, which
// some do with every other seed; each message ends once, and all memory comes back. BE_SEED
// repeats one, BE_SEEDS has it run so many.
func TestPackedContentsInAStorm(t *testing.T) {
	first, n := uint64(0), uint64(4)
	if s, err := strconv.ParseUint(os.Getenv("BE_SEED"), 0, 64); err == nil {
		first, n = s, 1
	} else if s, err := strconv.ParseUint(os.Getenv("BE_SEEDS"), 0, 64); err == nil {
		n = s
	}
	packed := uint64(0)
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { packed += packStorm(t, seed) })
	}
	if packed == 0 && n > 1 {
		t.Error("nothing was packed: the test shows nothing")
	}
}

func packStorm(t *testing.T, seed uint64) (packed uint64) {
	r := rand.New(rand.NewPCG(seed, 77))
	config := func() be.Config {
		c := be.Config{
			Workers: oneOf(r, 1, 1, 2), SendDepth: oneOf(r, 0, 2, 9, 24), RecvDepth: oneOf(r, 0, 4, 10), PackBytes: oneOf(r, 0, 0, 64, 2000, -1), Backlog: oneOf(r, 0, 5, 64),
			EagerBytes: oneOf(r, 0, 1000, 4096), PoolBytes: oneOf(r, int64(0), 24<<20), Linger: 2 * time.Second,
		}
		if r.IntN(4) == 0 {
			c.SharedReceives, c.RecvDepth = 100, 4
		}
		c.Debug.Check = r.IntN(2) == 0
		return c
	}
	p := &pair{fabric: sim.NewFabric(sim.Config{})}
	dev, err := p.fabric.NewDevice("sim", sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := spyOn(t, testmodel.On(t, dev))
	from := nodeIn(t, s, config())
	ctx, cancel := context.WithCancel(limit(t))
	var sinks, sources, breaker sync.WaitGroup
	var all sync.Map // of *packFlow by service
	var to []*be.Listener
	for i := range 3 {
		_, n := newNode(t, p.fabric, fmt.Sprint("sim", i), config())
		l, err := n.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		to = append(to, l)
		sinks.Go(func() {
			for k := uint64(0); ; k++ {
				s, err := l.Accept(ctx)
				if err != nil {
					return
				}
				v, _ := all.Load(s.Service())
				f := v.(*packFlow)
				if !f.taken.CompareAndSwap(false, true) { // a queue pair broke while it was dialed
					f = &packFlow{id: f.id, closed: make(chan struct{})}
				}
				sinks.Go(func() { f.sink(ctx, t, s, rand.New(rand.NewPCG(seed, 1000+k))) })
			}
		})
	}
	breaks := seed%2 == 1
	stop := make(chan struct{})
	breaker.Go(func() {
		for r := rand.New(rand.NewPCG(seed, 5)); breaks; {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(1+r.IntN(20)) * time.Millisecond):
				if qs := s.made(); len(qs) > 0 {
					qs[len(qs)-1-r.IntN(min(len(qs), 3))].Modify(&qp.Attr{State: qp.Err}, qp.MaskState)
				}
			}
		}
	})
	for g := range uint64(32) {
		sources.Go(func() {
			r := rand.New(rand.NewPCG(seed, 100+g))
			for life := range uint64(4) {
				f := &packFlow{id: g<<32 | life<<16 | seed, closed: make(chan struct{})}
				service := fmt.Sprint(f.id)
				all.Store(service, f)
				f.source(ctx, from, to[r.IntN(3)].Addr().String(), service, r)
			}
		})
	}
	sources.Wait()
	close(stop)
	breaker.Wait()
	all.Range(func(service, v any) bool {
		f := v.(*packFlow)
		eventually(t, "every message ends", func() bool { return f.ended.Load() >= f.posted.Load() })
		if f.dialed && !breaks {
			<-f.closed
		}
		return true
	})
	cancel()
	sinks.Wait()
	st := from.Stats()
	all.Range(func(service, v any) bool {
		f := v.(*packFlow)
		if f.ended.Load() != f.posted.Load() {
			t.Errorf("%v: %d of %d messages ended", service, f.ended.Load(), f.posted.Load())
		}
		for k := range f.good {
			if f.good[k].Load() && !f.got[k] && f.dialed && !f.early && !breaks {
				t.Errorf("%v: message %d of %d bytes was sent and did not arrive", service, k, len(f.message(uint32(k))))
				break
			}
		}
		return !t.Failed()
	})
	if !breaks && st.Failures+st.ProtocolErrors+st.RNR != 0 || st.OwnerErrors+st.ProtocolErrors != 0 || st.Memory.BadFrees+st.Memory.DoubleFrees != 0 {
		t.Errorf("%+v", st)
	}
	return st.Packed
}

// packFlow is what one socket carries.
type packFlow struct {
	id            uint64
	dialed        bool
	early         bool // the other side closed
	taken         atomic.Bool
	posted, ended atomic.Int32
	good          [packMessages]atomic.Bool
	got           [packMessages]bool
	closed        chan struct{} // by sink
}

const packMessages = 300

// message is the k-th of a flow: its number, if it is of four bytes at least, and what
// depends on both.
func (f *packFlow) message(k uint32) []byte {
	r := rand.New(rand.NewPCG(f.id, uint64(k)))
	b := make([]byte, oneOf(r, r.IntN(64), r.IntN(300), r.IntN(2049), r.IntN(2049)))
	if r.IntN(40) == 0 {
		b = make([]byte, 5000+r.IntN(40_000))
	}
	fill(b, byte(r.Uint32()))
	if len(b) < 4 {
		return b[:0]
	}
	binary.LittleEndian.PutUint32(b, k)
	return b
}

func (f *packFlow) source(ctx context.Context, n *be.Node, addr, service string, r *rand.Rand) {
	s, err := n.Dial(ctx, addr, service)
	if err != nil {
		return
	}
	f.dialed = true
	end := packMessages - r.IntN(packMessages)*r.IntN(2)
	for k := range uint32(end) {
		m := f.message(k)
		b, err := n.Alloc(len(m))
		if err != nil {
			continue
		}
		copy(b, m)
		f.posted.Add(1)
		done := func(err error, gathered bool) {
			if f.good[k].Store(err == nil && len(m) > 0); err == nil || gathered {
				n.Free(b)
			}
			f.ended.Add(1)
		}
		switch r.IntN(12) {
		case 0:
			short, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(2_000_000)))
			done(s.Send(short, b), false)
			cancel()
		case 1:
			short, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(2_000_000)))
			if err = s.PostContext(short, b, func(err error) { done(err, false); cancel() }); err != nil {
				done(err, true)
				cancel()
			}
		case 2:
			i := len(b) / 3
			if err = s.PostGather(b[:i], [][]byte{b[i : 2*i], b[2*i:]}, func(err error) { done(err, true) }); err != nil {
				done(err, true)
			}
		default:
			if err = s.Post(b, func(err error) { done(err, false) }); err != nil {
				done(err, true)
			}
		}
		if r.IntN(30) == 0 {
			time.Sleep(time.Duration(r.IntN(200_000)))
		}
	}
	s.Close()
}

func (f *packFlow) sink(ctx context.Context, t *testing.T, s *be.Socket, r *rand.Rand) {
	defer close(f.closed)
	last := int64(-1)
	take := func(b []byte) {
		if len(b) > 0 {
			k := int64(binary.LittleEndian.Uint32(b))
			if k <= last || k >= packMessages || string(f.message(uint32(k))) != string(b) {
				t.Errorf("%s: message %d of %d bytes after %d is not what was sent", s.Service(), k, len(b), last)
			} else {
				f.got[k] = true
			}
			last = k
		}
		s.Node().Free(b)
	}
	left := 1 << 30
	if f.early = r.IntN(8) == 0; f.early {
		left = r.IntN(packMessages)
	}
	if r.IntN(2) == 0 && !f.early {
		ended := make(chan struct{})
		s.OnMessage(func(b []byte, err error) {
			if err != nil {
				close(ended)
				return
			}
			take(b)
		})
		<-ended
		left = 0
	}
	for ; left > 0; left-- {
		b, err := s.Recv(ctx)
		if err != nil {
			break
		}
		take(b)
		if r.IntN(50) == 0 {
			time.Sleep(time.Duration(r.IntN(300_000)))
		}
	}
	s.Close()
}
