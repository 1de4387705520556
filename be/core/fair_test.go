package core

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// stepQP tells a test of each request, in the order of posting.
type stepQP struct {
	tapQP
	step func(key mr.LKey, bytes int)
}

func (q *stepQP) PostSend(wrs []qp.SendWR) (int, error) {
	if q.step != nil {
		for i := range wrs {
			each(&wrs[i], q.step)
		}
	}
	return q.tapQP.PostSend(wrs)
}

// spread is how far the sources are apart at most, after any request, in bytes for
// each of a socket's weight, over many turns in which all have work.
func spread(t *testing.T, rng *rand.Rand, round uint8) (worst float64, sources []*source) {
	for range 2 + rng.IntN(20) {
		c := &source{weight: 1 + rng.IntN(4)*rng.IntN(4)}
		switch rng.IntN(3) {
		case 0:
			c.size = 1 + rng.IntN(200)
		case 1:
			c.size = rng.IntN(8 << 10)
		case 2:
			c.size = 8<<10 + 1 + rng.IntN(1<<20-8<<10)
		}
		sources = append(sources, c)
	}
	q := &stepQP{tapQP: tapQP{bytes: map[mr.LKey]int{}}}
	l := newLoopOn(t, q, &q.tapQP, sources...)
	if round > 0 {
		l.e.sched.shift = round
	}
	// The first large messages are asked for, then all begin at once.
	l.sources = nil
	for _, c := range sources {
		if c.size > l.e.cfg.EagerLimit {
			l.sources = append(l.sources, c)
		}
	}
	l.e.window.posted = 1 << 40
	for range 2 * len(sources) {
		l.turn()
	}
	l.sources = sources
	l.e.window = NewWindow(l.e.cfg.SendDepth * l.e.cfg.Fragment) // nobody is held up
	served := map[mr.LKey]float64{}
	weight := map[mr.LKey]float64{}
	for _, c := range sources {
		served[key(c.s)], weight[key(c.s)] = 0, float64(c.weight)
	}
	q.step = func(k mr.LKey, bytes int) {
		if _, of := served[k]; !of {
			return // a control message
		}
		served[k] += float64(bytes) / weight[k]
		lo, hi := math.Inf(1), 0.0
		for _, v := range served {
			lo, hi = min(lo, v), max(hi, v)
		}
		worst = max(worst, hi-lo)
	}
	for range 400 {
		l.turn()
		for _, c := range sources {
			if c.s.queue.head == nil && c.s.writing.head == nil {
				t.Fatalf("a socket of %d bytes a message has run dry: the test shows nothing", c.size)
			}
		}
	}
	return worst, sources
}

// TestFairToOneFragment: sockets that always have something to send, of any sizes
// and weights, small messages and large ones side by side, are never further apart
// than one fragment and one of the longest small messages. In the control, a round
// is without end.
func TestFairToOneFragment(t *testing.T) {
	const bound = 64<<10 + 8<<10 + wire.HeaderLen
	unfair := 0
	for _, seed := range seeds(t, 60) {
		rng := func() *rand.Rand { return rand.New(rand.NewPCG(seed, 9)) }
		worst, sources := spread(t, rng(), 0)
		if worst > bound {
			t.Errorf("seed %d: %v bytes apart, want at most %d", seed, worst, bound)
			for _, c := range sources {
				t.Logf("weight %d, messages of %d bytes", c.weight, c.size)
			}
		}
		if worst, _ := spread(t, rng(), 62); worst > bound {
			unfair++
		}
	}
	if unfair == 0 {
		t.Error("the control without rounds was fair: the test shows nothing")
	}
}

// TestHeldUpCatchesUp: sockets with small messages that lack credits for a while
// get what they missed afterwards, as far as one fragment, and no more.
func TestHeldUpCatchesUp(t *testing.T) {
	small, large := &source{size: 1000}, &source{size: 1 << 20}
	q := &stepQP{tapQP: tapQP{bytes: map[mr.LKey]int{}}}
	l := newLoopOn(t, q, &q.tapQP, small, large)
	for range 100 {
		l.turn()
	}
	served := map[mr.LKey]int{}
	q.step = func(k mr.LKey, bytes int) { served[k] += bytes }
	e := l.e
	for range 200 { // of large fragments only; those that are not the last of a message
		e.credits.granted = e.credits.consumed + 1
		e.Flush(1)
		l.q.complete(e)
	}
	if served[key(small.s)] != 0 || served[key(large.s)] < 10*64<<10 {
		t.Fatalf("without credits %d small and %d large bytes", served[key(small.s)], served[key(large.s)])
	}
	clear(served)
	for served[key(large.s)] < 64<<10 {
		l.turn()
	}
	if got := served[key(small.s)]; got < 60<<10 || got > 3*64<<10 {
		t.Errorf("%d bytes of small messages went before one fragment, want about one or two", got)
	}
}

// TestSchedulerAgreesWithItself: whatever is added, served and taken out, of any
// kinds, each socket that waits is found, and none that does not.
func TestSchedulerAgreesWithItself(t *testing.T) {
	for _, seed := range seeds(t, 40) {
		rng := rand.New(rand.NewPCG(seed, 10))
		longest := 1 + rng.IntN(100_000)
		c := newScheduler(longest)
		c.round = rng.Uint64N(1 << 40)
		waits := [kinds]map[*Socket]bool{{}, {}, {}}
		var socks []*Socket
		for range 1 + rng.IntN(50) {
			socks = append(socks, &Socket{weight: uint16(1 + rng.Int32N(5)), socketRest: new(socketRest)})
		}
		for range 5000 {
			s, k := socks[rng.IntN(len(socks))], kind(rng.IntN(int(kinds)))
			switch rng.IntN(4) {
			case 0, 1:
				c.add(k, s)
				waits[k][s] = true
			case 2:
				if rng.IntN(4) == 0 {
					c.remove(k, s)
					delete(waits[k], s)
				}
			case 3:
				may := uint8(1 + rng.IntN(7))
				k, s := c.next(may)
				want := 0
				for i := range kinds {
					if may&(1<<i) != 0 {
						want += len(waits[i])
					}
				}
				if (s == nil) != (want == 0) || s != nil && (!waits[k][s] || may&(1<<k) == 0) {
					t.Fatalf("seed %d: of %d that wait, a socket %v of kind %d is next", seed, want, s != nil, k)
				}
				if s != nil {
					more := rng.IntN(3) > 0
					c.spend(k, s, rng.IntN(longest+1), more)
					if !more {
						delete(waits[k], s)
					}
				}
			}
			for k := range kinds {
				if n := c.waiting(k); n != len(waits[k]) {
					t.Fatalf("seed %d: %d sockets of kind %d wait, the scheduler has %d", seed, len(waits[k]), k, n)
				}
			}
		}
	}
}

// TestSoloChangesNothing: who is served next, and with what share, is the same if no
// socket is ever treated as alone.
func TestSoloChangesNothing(t *testing.T) {
	for _, seed := range seeds(t, 200) {
		rng := rand.New(rand.NewPCG(seed, 12))
		longest := 1 + rng.IntN(100_000)
		cs := [2]scheduler{newScheduler(longest), newScheduler(longest)}
		var socks [2][3]Socket
		for j := range socks[0] {
			weight := uint16(1 + rng.IntN(5))
			for i := range cs {
				socks[i][j] = Socket{weight: weight, socketRest: new(socketRest)}
			}
		}
		solos := 0
		for step := range 1000 {
			do, k, j, may, n, more := rng.IntN(5), kind(rng.IntN(int(kinds))), rng.IntN(3), uint8(1+rng.IntN(7)), rng.IntN(longest+1), rng.IntN(3) > 0
			if rng.IntN(4) > 0 {
				j, k = 0, writes
			}
			var got [2]string
			for i := range cs {
				c := &cs[i]
				switch do {
				case 0:
					c.add(k, &socks[i][j])
				case 1:
					c.remove(k, &socks[i][j])
				default:
					k, s := c.next(may)
					got[i] = fmt.Sprint(k)
					if s == nil {
						break
					}
					if do > 2 { // else it finds no room
						c.spend(k, s, n, more)
					}
					got[i] += fmt.Sprint(" ", s.share, s == &socks[i][0], s == &socks[i][1])
				}
				got[i] += fmt.Sprint(" ", c.busy(), c.beginners())
			}
			if cs[0].solo != nil {
				solos++
			}
			cs[1].endSolo()
			if got[0] != got[1] {
				t.Fatalf("seed %d, step %d: %s, want %s", seed, step, got[0], got[1])
			}
		}
		if solos == 0 {
			t.Fatalf("seed %d: no socket was ever alone", seed)
		}
	}
}

// TestSocketIsCompact: what a small message that is sent touches is in one line, and
// what one that arrives does in the next. Go puts objects of 113 to 128 bytes on
// multiples of 128.
func TestSocketIsCompact(t *testing.T) {
	var s Socket
	if n := unsafe.Offsetof(s.touched); n >= 64 {
		t.Errorf("what is sent touches byte %d, want less than 64", n)
	}
	if n := unsafe.Offsetof(s.User); n != 64 {
		t.Errorf("what arrives touches from byte %d on, want 64", n)
	}
	if n := unsafe.Sizeof(s); n <= 112 || n > 128 {
		t.Errorf("a socket has %d bytes, want 113 to 128", n)
	}
}

// TestEngineIsCompact: a small message that is sent touches four lines of its engine, and
// one that arrives all six. Go puts objects of 384 bytes on multiples of 128.
func TestEngineIsCompact(t *testing.T) {
	var e Engine
	if n := unsafe.Offsetof(e.h); n > 4*64 {
		t.Errorf("what is sent touches byte %d, want no more than 256", n)
	}
	if n := unsafe.Sizeof(e); n <= 352 || n > 384 {
		t.Errorf("an engine has %d bytes, want 353 to 384", n)
	}
}

// TestRestsAreCompact: what large messages need of an engine and of a socket beyond that is
// in six and in two lines.
func TestRestsAreCompact(t *testing.T) {
	var e engineRest
	var s socketRest
	for _, c := range []struct {
		name string
		at   uintptr
		want uintptr
	}{
		{"the first lines of an engine's rest end", unsafe.Sizeof(e.bulk), 4 * 64},
		{"its configuration begins", unsafe.Offsetof(e.cfg) % 64, 0},
		{"what it counts begins", (unsafe.Offsetof(e.stats) + unsafe.Offsetof(e.stats.Rendezvous)) % 64, 0},
		{"what arrives needs of a socket's rest begins", unsafe.Offsetof(s.e), 64},
		{"and ends", unsafe.Offsetof(s.readTail), 128},
	} {
		if c.at != c.want {
			t.Errorf("%s at byte %d, want %d", c.name, c.at, c.want)
		}
	}
	if n := unsafe.Offsetof(e.cfg.HoldTimeout); n >= 64 {
		t.Errorf("what large messages need of the configuration ends after byte %d, want less than 64", n)
	}
	if n := unsafe.Offsetof(e.stats.Visits) - unsafe.Offsetof(e.stats.Rendezvous); n >= 64 {
		t.Errorf("what they count ends after byte %d, want less than 64", n)
	}
}

// BenchmarkIdleSockets is a turn of two sockets that send, beside many that do not.
func BenchmarkIdleSockets(b *testing.B) {
	for _, idle := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("idle=%d", idle), func(b *testing.B) {
			l := newLoop(b, &source{size: 64}, &source{size: 1 << 20})
			for i := range idle {
				l.e.addSocket(uint32(2*i + 1000)).state = sockOpen
			}
			for b.Loop() {
				l.turn()
			}
			st := l.e.Stats()
			b.ReportMetric(float64(st.Visits)/float64(st.Requests), "visits/request")
		})
	}
}

// TestSchedulerOfOne: a socket alone is served as it is with slots, which may come at any
// moment.
func TestSchedulerOfOne(t *testing.T) {
	for _, seed := range seeds(t, 200) {
		rng := rand.New(rand.NewPCG(seed, 11))
		var cs [2]scheduler
		var socks [2][2]Socket
		for i := range cs {
			cs[i] = newScheduler(8 << 10)
			for j := range socks[i] {
				socks[i][j] = Socket{weight: uint16(1 + 3*j), socketRest: new(socketRest)}
			}
		}
		cs[1].makeSlots()
		second := rng.IntN(60) // step from which there are two
		for step := range 120 {
			if step == second {
				cs[0].makeSlots() // else when two wait, if they do
			}
			do, k, j, n, more := rng.IntN(3), kind(rng.IntN(int(kinds))), 0, 1+rng.IntN(8<<10), rng.IntN(3) > 0
			if step >= second {
				j = rng.IntN(2)
			}
			var got [2]int
			for i := range cs {
				c := &cs[i]
				switch do {
				case 0:
					c.add(k, &socks[i][j])
				case 1:
					c.remove(k, &socks[i][j])
				default:
					k, s := c.next(1<<kinds - 1)
					got[i] = int(k)
					if s != nil {
						got[i] += int(s.weight) << 8
						c.spend(k, s, n, more)
					}
				}
				got[i] += c.busy() << 16
			}
			if got[0] != got[1] || cs[0].round != cs[1].round {
				t.Fatalf("seed %d, step %d, two from %d: %#x without slots, %#x with them", seed, step, second, got[0], got[1])
			}
		}
	}
}
