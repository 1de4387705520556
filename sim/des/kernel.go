package des

import "fmt"

// stuckEvents is how many events may run at one moment of virtual time before the
// run is taken for one that does not end.
const stuckEvents = 10_000_000

// StuckError says that virtual time stood still for too many events.
type StuckError struct {
	At     Time
	Events int
	Kind   Kind // of the last
}

// Error says when and after how many events.
func (e *StuckError) Error() string {
	return fmt.Sprintf("virtual time stands still: %d events at %d ps, the last of kind %d", e.Events, e.At, e.Kind)
}

// Kernel is the clock and the event queue of one simulation.
type Kernel struct {
	now      Time
	seq      uint64
	queue    queue
	handlers []func(a, b int32)
	soon     [][len(distances)]func(a, b int32) // by kind; nil: nothing to prepare
	done     uint64
	still    int // events since the clock last moved
	limit    int // of still
	calls    Table[func()]
	callKind Kind
}

// New makes a kernel at time 0.
func New() *Kernel {
	k := &Kernel{limit: stuckEvents}
	k.callKind = k.Handle(func(a, _ int32) { k.calls.Take(a)() })
	return k
}

// Handle gives the kind of events that f handles. There are at most 65536 of them.
func (k *Kernel) Handle(f func(a, b int32)) Kind {
	k.handlers, k.soon = append(k.handlers, f), append(k.soon, [len(distances)]func(a, b int32){})
	return Kind(len(k.handlers) - 1)
}

// Soon has steps told of events of a kind while they come nearer, the last of them when
// two others are still before. Each may have the cache get what the next step, or the
// handler, looks at, so that nobody waits for memory, and must change nothing: of events
// that are scheduled late some steps are not told, or twice. nil steps do nothing.
func (k *Kernel) Soon(kind Kind, steps ...func(a, b int32)) {
	copy(k.soon[kind][len(distances)-len(steps):], steps)
}

// distances are how many events are before one when the steps of Soon are told of it.
var distances = [...]int{26, 20, 14, 9, 5, 2}

// Now is the time of the event that runs, or of the last one that ran.
func (k *Kernel) Now() Time { return k.now }

// Events is how many events have run.
func (k *Kernel) Events() uint64 { return k.done }

// Pending is how many events are to come.
func (k *Kernel) Pending() int { return k.queue.len() }

// At schedules an event. A time that has passed is taken for now.
func (k *Kernel) At(t Time, kind Kind, a, b int32) {
	k.seq++
	k.queue.push(event{at: max(t, k.now), seq: k.seq, kind: kind, a: a, b: b})
}

// Call has f called at a time: an event for what is too rare to have a kind.
func (k *Kernel) Call(t Time, f func()) { k.At(t, k.callKind, k.calls.Put(f), 0) }

// Reserve gives a place in the order of scheduling, for AtPlace. Whoever has many
// events to come in an order that it knows, as frames on a wire are, keeps only the
// first in the queue and still has each run where it would have.
func (k *Kernel) Reserve() uint64 {
	k.seq++
	return k.seq
}

// AtPlace schedules an event as if At had been called when the place was reserved.
func (k *Kernel) AtPlace(t Time, place uint64, kind Kind, a, b int32) {
	k.queue.push(event{at: max(t, k.now), seq: place, kind: kind, a: a, b: b})
}

// Next is the time of the first event to come, Never if there is none.
func (k *Kernel) Next() Time { return k.queue.time() }

// Step runs the first event to come and reports whether there was one. The error
// is a *StuckError.
func (k *Kernel) Step() (ran bool, err error) {
	if k.queue.len() == 0 {
		return false, nil
	}
	e := k.queue.pop()
	if e.at > k.now {
		k.now, k.still = e.at, 0
	}
	if k.still++; k.still > k.limit {
		return false, &StuckError{At: k.now, Events: k.still, Kind: e.kind}
	}
	for i, d := range distances {
		if d < k.queue.next.n {
			if e := k.queue.next.at(d); k.soon[e.kind][i] != nil {
				k.soon[e.kind][i](e.a, e.b)
			}
		}
	}
	k.done++
	k.handlers[e.kind](e.a, e.b)
	return true, nil
}

// Run runs all events up to and at the given time, and moves the clock there.
// With Never it runs until no event is to come and leaves the clock at the last.
// The error is a *StuckError.
func (k *Kernel) Run(until Time) error {
	for k.Next() <= until {
		if ran, err := k.Step(); !ran {
			return err
		}
	}
	if until != Never {
		k.now = max(k.now, until)
	}
	return nil
}
