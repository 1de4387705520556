package fabric

import (
	"bytes"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// supplyLoad is 64 queue pairs between two hosts, each of which posts requests of a page
// of some KiB with one doorbell, and again when they are done. Memory of the second host
// is used at random places that begin with a page of 4 KiB, that of the first at one.
type supplyLoad struct {
	op          qp.Opcode
	pages, list int
	size        int
}

// run gives the requests a microsecond, and what the caches of both hosts did for them.
func (l supplyLoad) run(t testing.TB, n NICConfig) (rate float64, caches [2]Caches) {
	t.Helper()
	f, err := Pair(Config{Seed: 1, NIC: n}, Link{Gbps: 400, Delay: 10 * des.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	rng, memory := des.NewStream(1, 97, 0, 0), make([]byte, l.pages*DefaultPageBytes+l.size)
	reg, err := f.Host(1).Register(memory, mr.LocalWrite|mr.RemoteWrite|mr.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	place := func() uint64 { return reg.Addr + uint64(rng.N(int64(l.pages)))*DefaultPageBytes }
	for range 64 {
		x, y := f.join(t, 0, 1, l.size, nil)
		receive := func() {
			if _, err := y.q.PostRecv([]qp.RecvWR{{SGEs: []qp.SGE{{Addr: place(), Length: uint32(l.size), LKey: reg.LKey}}}}); err != nil {
				t.Fatal(err)
			}
		}
		for range 4 * l.list {
			receive()
		}
		y.done = func(cq.Completion) { receive() }
		left := 0
		post := func() {
			var wrs []qp.SendWR
			for range l.list {
				wrs = append(wrs, qp.SendWR{Opcode: l.op, Flags: qp.Signaled, SGEs: x.sge(l.size), RemoteAddr: place(), RKey: reg.RKey})
			}
			left = l.list
			if _, err := x.q.PostSend(wrs); err != nil {
				t.Fatal(err)
			}
		}
		x.done = func(c cq.Completion) {
			if c.Status != cq.Success {
				t.Fatal(c.Err())
			}
			done++
			if left--; left == 0 {
				post()
			}
		}
		post()
	}
	const warm, span = 200 * des.Microsecond, 400 * des.Microsecond
	runTo(t, f, warm)
	before, was := done, [2]Caches{f.Host(0).Caches(), f.Host(1).Caches()}
	runTo(t, f, warm+span)
	for i, w := range was {
		c := f.Host(i).Caches()
		for _, s := range []struct{ now, was *CacheStats }{{&c.WQEs, &w.WQEs}, {&c.Pages, &w.Pages}} {
			s.now.Hits, s.now.Misses = s.now.Hits-s.was.Hits, s.now.Misses-s.was.Misses
		}
		caches[i] = c
	}
	return float64(done-before) / (float64(span) / float64(des.Microsecond)), caches
}

func (s CacheStats) miss() float64 { return float64(s.Misses) / max(1, float64(s.Hits+s.Misses)) }

// TestPagesLaw: of n pages that are used with equal chance, 1 - entries/n of the uses
// miss, and no more requests than fetches over that and over the time of a fetch are
// done. Huge pages are all there, and without a cache nothing is missed.
func TestPagesLaw(t *testing.T) {
	const entries, fetches, miss = 1024, 4, 800 * des.Nanosecond
	n := NICConfig{Pages: Pages{Cache: Cache{Entries: entries, Fetches: fetches, Miss: miss}}}
	for _, l := range []supplyLoad{
		{qp.Write, 4096, 1, 64}, {qp.Write, 16384, 1, 64}, {qp.Read, 4096, 1, 64}, {qp.Send, 4096, 1, 64}, {qp.Write, 4096, 1, 4096},
	} {
		got, c := l.run(t, n)
		share := 1 - entries/float64(l.pages)
		law := fetches / share / (float64(miss) / float64(des.Microsecond))
		t.Logf("%v of %d bytes over %d pages: %.2f million a second, by the law %.2f; %.3f miss, by the law %.3f", l.op, l.size, l.pages, got, law, c[1].Pages.miss(), share)
		if !near(got, law, 0.05) || !near(c[1].Pages.miss(), share, 0.05) {
			t.Errorf("%v of %d bytes over %d pages: %.2f million a second, want %.2f within 5 %%; %.3f miss, want %.3f", l.op, l.size, l.pages, got, law, c[1].Pages.miss(), share)
		}
		if c[0].Pages.Misses != 0 || c[0].Pages.Hits == 0 {
			t.Errorf("%v: the other host's NIC uses one page for each queue pair: %+v", l.op, c[0].Pages)
		}
		huge := n
		huge.Pages.PageBytes = 2 << 20
		most, c := l.run(t, huge)
		free, none := l.run(t, NICConfig{})
		if c[1].Pages.miss() > 0 || most < 1.5*law || !near(most, free, 0.05) || none != [2]Caches{} {
			t.Errorf("%v of %d bytes over %d pages: with huge pages %.2f million a second, %+v; without a cache %.2f, %+v", l.op, l.size, l.pages, most, c[1].Pages, free, none)
		}
	}
}

// TestWQEsLaw: each request of several that a doorbell announces is fetched, and so is
// each receive; one that is posted alone comes with its doorbell.
func TestWQEsLaw(t *testing.T) {
	const fetches, miss = 4, 800 * des.Nanosecond
	n := NICConfig{WQEs: Cache{Entries: 4096, Fetches: fetches, Miss: miss}}
	law := fetches / (float64(miss) / float64(des.Microsecond))
	for _, tt := range []struct {
		l          supplyLoad
		send, recv bool // they are fetched
	}{
		{supplyLoad{qp.Write, 1, 1, 64}, false, false},
		{supplyLoad{qp.Write, 1, 2, 64}, true, false},
		{supplyLoad{qp.Read, 1, 2, 64}, true, false},
		{supplyLoad{qp.Send, 1, 1, 64}, false, true},
		{supplyLoad{qp.Send, 1, 2, 64}, true, true},
		{supplyLoad{qp.Send, 1, 1, 9000}, false, true}, // three packets
	} {
		got, c := tt.l.run(t, n)
		t.Logf("%v, %d a doorbell, %d bytes: %.2f million a second; of the sender %+v, of the receiver %+v", tt.l.op, tt.l.list, tt.l.size, got, c[0].WQEs, c[1].WQEs)
		requests := got * 400
		for i, fetched := range []bool{tt.send, tt.recv} {
			want := 0.0
			if fetched {
				want = requests
			}
			if m := float64(c[i].WQEs.Misses); m < want*0.95-1 || m > want*1.05+1 {
				t.Errorf("%v, %d a doorbell: host %d fetched %.0f for %.0f requests, want %.0f", tt.l.op, tt.l.list, i, m, requests, want)
			}
		}
		if !tt.send && !tt.recv {
			if got < 1.5*law {
				t.Errorf("%v, %d a doorbell: %.2f million a second, nothing is fetched", tt.l.op, tt.l.list, got)
			}
		} else if !near(got, law, 0.05) {
			t.Errorf("%v, %d a doorbell: %.2f million a second, want %.2f within 5 %%", tt.l.op, tt.l.list, got, law)
		}
	}
}

// TestSupplyOfOne: with room for one request and one page, which each of two queue pairs
// takes from the other, messages that lie over many pages still arrive, whole and in
// order, also where packets are lost, and several go in a turn.
func TestSupplyOfOne(t *testing.T) {
	for _, quantum := range []int{1, 3} {
		one := Cache{Entries: 1, Fetches: 1, Miss: 300 * des.Nanosecond}
		cfg := Config{Seed: 5, NIC: NICConfig{Quantum: quantum, Contexts: Contexts{Cache: one}, WQEs: one, Pages: Pages{Cache: one, PageBytes: 1024}}}
		f, err := Pair(cfg, Link{Gbps: 100, Delay: 100 * des.Nanosecond, Loss: 2e-3})
		if err != nil {
			t.Fatal(err)
		}
		const size = 300_001
		left := 0
		var ends [][2]*end
		for i := range 2 {
			x, y := f.join(t, i, 1-i, 3*size, func(p *qp.Path) { p.AckTimeout = 5 })
			for k := range x.buf {
				x.buf[k] = byte(k*7 + i)
			}
			want := bytes.Clone(x.buf)
			clear(x.buf[size : 2*size]) // what the READ brings
			if _, err := y.q.PostRecv([]qp.RecvWR{{SGEs: []qp.SGE{{Addr: y.reg.Addr, Length: size, LKey: y.reg.LKey}}}}); err != nil {
				t.Fatal(err)
			}
			copy(y.buf[size:2*size], want[size:2*size])
			at := func(e *end, k int) []qp.SGE {
				return []qp.SGE{{Addr: e.reg.Addr + uint64(k*size), Length: size, LKey: e.reg.LKey}}
			}
			left += 3
			x.done = func(c cq.Completion) {
				if left--; c.Status != cq.Success {
					t.Errorf("quantum %d: %v", quantum, c.Err())
				}
			}
			if _, err := x.q.PostSend([]qp.SendWR{
				{Opcode: qp.Send, Flags: qp.Signaled, SGEs: at(x, 0)},
				{Opcode: qp.Read, Flags: qp.Signaled, SGEs: at(x, 1), RemoteAddr: y.reg.Addr + size, RKey: y.reg.RKey},
				{Opcode: qp.Write, Flags: qp.Signaled, SGEs: at(x, 2), RemoteAddr: y.reg.Addr + 2*size, RKey: y.reg.RKey},
			}); err != nil {
				t.Fatal(err)
			}
			ends = append(ends, [2]*end{x, y})
		}
		runTo(t, f, des.Never)
		if left != 0 {
			t.Errorf("quantum %d: %d requests are not done", quantum, left)
		}
		for _, e := range ends {
			if !bytes.Equal(e[0].buf, e[1].buf) {
				t.Errorf("quantum %d: what arrived is not what was sent", quantum)
			}
		}
		if f.Host(0).Stats().Retransmits == 0 || f.Host(0).Caches().Pages.Misses < 3*size/1024 {
			t.Errorf("quantum %d: %+v, %+v: the test shows nothing", quantum, f.Host(0).Stats(), f.Host(0).Caches())
		}
	}
}
