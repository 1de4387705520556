package core

import (
	"container/heap"
	"testing"
	"time"
)

// incast is a model of senders with a window each, whose fragments go over their
// own ports and one switch port to a receiver. Every port has the same rate, and a
// queue that is served in order.
type incast struct {
	windows   []Window
	events    eventHeap
	n         int
	now       time.Duration
	ports     []time.Duration // when each sender's port is free
	out       time.Duration   // when the switch port is free
	queued    int             // bytes in the switch
	peak      int
	delivered []int
}

const (
	modelFragment = 64 << 10
	modelHop      = 2 * time.Microsecond // each way, sender to switch to receiver
	// The time of one fragment at 100 Gb/s.
	modelService = modelFragment * time.Second / (100_000_000_000 / 8)
)

type event struct {
	at  time.Duration
	n   int // order of events at one time
	run func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].n < h[j].n
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	l := *h
	e := l[len(l)-1]
	*h = l[:len(l)-1]
	return e
}

func (m *incast) after(at time.Duration, f func()) {
	m.n++
	heap.Push(&m.events, event{at, m.n, f})
}

func runIncast(senders int, w Window, long time.Duration) *incast {
	m := &incast{ports: make([]time.Duration, senders), delivered: make([]int, senders)}
	for i := range senders {
		m.windows = append(m.windows, w)
		// The first message of an engine is a small one, on an idle fabric.
		m.windows[i].Sample(2*modelHop, 0, 0)
	}
	for i := range senders {
		m.after(0, func() { m.send(i) })
	}
	for len(m.events) > 0 && m.events[0].at < long {
		e := heap.Pop(&m.events).(event)
		m.now = e.at
		e.run()
	}
	return m
}

func (m *incast) send(i int) {
	w := &m.windows[i]
	for w.Room(modelFragment) {
		w.Take(modelFragment)
		posted := m.now
		m.ports[i] = max(m.ports[i], m.now) + modelService
		m.after(m.ports[i]+modelHop/2, func() { m.forward(i, posted) })
	}
}

// forward has a fragment arrive at the switch.
func (m *incast) forward(i int, posted time.Duration) {
	m.queued += modelFragment
	m.peak = max(m.peak, m.queued)
	m.out = max(m.out, m.now) + modelService
	m.after(m.out, func() {
		m.queued -= modelFragment
		m.after(m.now+modelHop*3/2, func() {
			m.delivered[i] += modelFragment
			w := &m.windows[i]
			w.Sample(m.now, posted, modelFragment)
			w.Return(modelFragment)
			m.send(i)
		})
	})
}

// goodput is the share of the link that was used.
func (m *incast) goodput() float64 {
	sum := 0
	for _, n := range m.delivered {
		sum += n
	}
	return float64(sum) / modelFragment * float64(modelService) / float64(m.now)
}

func (m *incast) jain() float64 {
	var v []float64
	for _, n := range m.delivered {
		v = append(v, float64(n))
	}
	return jain(v)
}

// TestAdaptiveWindow is case C15 for the window's law, in a model of the fabric:
// with 16 senders to one receiver the queue in the switch is no longer than with
// the static window of 64 KiB, 1 MiB, and the link is as full; alone, an engine
// fills the link, which a static window of one fragment does not. In the control,
// with the most that the adaptive one may have, the queue overflows a buffer of
// 2 MiB.
func TestAdaptiveWindow(t *testing.T) {
	const long = 20 * time.Millisecond
	adaptive := NewAdaptiveWindow(modelFragment, 1<<20, 4*modelService)
	for _, tt := range []struct {
		desc    string
		senders int
		w       Window
		peak    int
		goodput float64
		over    bool // the control: the peak is above
	}{
		{"static 64 KiB, 16 to 1", 16, NewWindow(modelFragment), 1 << 20, 0.9, false},
		{"adaptive, 16 to 1", 16, adaptive, 1 << 20, 0.95, false},
		{"adaptive, 2 to 1", 2, adaptive, 1 << 20, 0.95, false},
		{"adaptive, 4 to 1", 4, adaptive, 1 << 20, 0.95, false},
		{"adaptive, alone", 1, adaptive, modelFragment * 2, 0.95, false},
		{"most, 16 to 1", 16, NewWindow(1 << 20), 2 << 20, 0.9, true},
	} {
		m := runIncast(tt.senders, tt.w, long)
		if m.peak > tt.peak != tt.over || m.goodput() < tt.goodput || m.jain() < 0.95 {
			t.Errorf("%s: peak queue %d, goodput %.3f, Jain %.3f", tt.desc, m.peak, m.goodput(), m.jain())
		}
		t.Logf("%s: peak queue %d KiB, goodput %.3f, Jain %.3f, limit of the first %d KiB", tt.desc, m.peak>>10, m.goodput(), m.jain(), m.windows[0].Limit()>>10)
	}
	if m := runIncast(1, NewWindow(modelFragment), long); m.goodput() > 0.9 {
		t.Errorf("a static window of one fragment fills %.3f of the link alone: the test shows nothing", m.goodput())
	}
}

// TestAdaptiveWindowLimits: it stays within its bounds, does not grow when it is
// not what holds the engine back, and shrinks once a round trip.
func TestAdaptiveWindowLimits(t *testing.T) {
	w := NewAdaptiveWindow(100, 1000, 50)
	w.Sample(10, 0, 0)
	w.Take(100)
	for i := range time.Duration(1000) {
		w.posted = w.limit
		w.Sample(i*10+20, i*10, 100)
	}
	if w.Limit() != 1000 {
		t.Errorf("limit %d without queueing, want 1000", w.Limit())
	}
	now := time.Duration(20000)
	w.Sample(now, now-1000, 100)
	if w.Limit() != 500 {
		t.Errorf("limit %d after much queueing, want half", w.Limit())
	}
	w.Sample(now+10, now-990, 100)
	if w.Limit() != 500 {
		t.Errorf("limit %d: shrunk twice in a round trip", w.Limit())
	}
	for i := range time.Duration(100) {
		w.Sample(now+i*2000+2000, now+i*2000+1, 100)
	}
	if w.Limit() != 100 {
		t.Errorf("limit %d, want the least", w.Limit())
	}
	w.posted = 10
	for i := range time.Duration(100) {
		w.Sample(now*100+i*10+20, now*100+i*10, 10)
	}
	if w.Limit() != 100 {
		t.Errorf("limit %d though little is posted", w.Limit())
	}
}
