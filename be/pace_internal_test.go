package be

import (
	"testing"
	"time"
)

// runPace has a worker work for a part of its turns, beside others that run for so long
// whenever they are let to, and gives the time that passed and how often it blocked.
func runPace(p *pace, turns int, busy func(i int) bool, others time.Duration) (took time.Duration, sleeps int) {
	const turn = time.Microsecond
	if p.told == nil {
		p.told = new(bool)
	}
	if p.full == nil {
		p.full = new(bool)
	}
	for i := range turns {
		begun := took
		took += turn
		switch p.next(begun, busy(i)) {
		case stepYield:
			p.leave(took)
			took += others
		case stepSleep:
			sleeps++
			took += 5 * time.Microsecond
			p.slept(took)
		}
	}
	return took, sleeps
}

func idleTurns(int) bool { return false }
func busyTurns(int) bool { return true }

// TestPace: a worker without work looks a few times, or for as long as it may spin, then
// blocks; one with work lets others run now and then.
func TestPace(t *testing.T) {
	var p pace
	if _, sleeps := runPace(&p, 100, idleTurns, 0); sleeps != 100/idleRounds {
		t.Errorf("blocked %d times in 100 idle turns, want %d", sleeps, 100/idleRounds)
	}
	p = pace{spin: 80 * time.Microsecond}
	if _, sleeps := runPace(&p, 100, idleTurns, 0); sleeps != 1 {
		t.Errorf("blocked %d times in 100 idle turns of 1 µs, with 80 µs of spinning", sleeps)
	}
	for _, c := range []struct {
		told, full bool
		want       time.Duration
	}{{true, false, yieldAfter}, {true, true, yieldFull}, {false, false, yieldAnyway}, {false, true, yieldAnyway}} {
		const others = 10 * time.Microsecond
		var told bool
		p = pace{told: &told, full: &c.full}
		took, _ := runPace(&p, 10_000, func(int) bool { told = c.told; return true }, others)
		yields := (took - 10*time.Millisecond) / others
		if most := 10 * time.Millisecond / c.want; yields < most*3/4 || yields > most {
			t.Errorf("let others run %d times in 10 ms of work, want every %v (woke somebody: %v, full turns: %v)", yields, c.want, c.told, c.full)
		}
	}
}

// TestPaceBesideGoroutinesThatCompute: where letting others run costs 10 ms, an idle
// worker pays that once in a while only, and a busy one has its half of the time. Without
// the defence, a worker pays for each look.
func TestPaceBesideGoroutinesThatCompute(t *testing.T) {
	const slice = 10 * time.Millisecond
	var p pace
	took, sleeps := runPace(&p, 10_000, idleTurns, slice)
	if least := 9_900; sleeps < least || took > 300*time.Millisecond {
		t.Errorf("10000 idle turns took %v and blocked %d times", took, sleeps)
	}
	p = pace{}
	took, _ = runPace(&p, 100_000, busyTurns, slice)
	if took > 250*time.Millisecond {
		t.Errorf("100 ms of work took %v", took)
	}
	careless := time.Duration(0)
	for i := range 10_000 {
		p = pace{idle: i % idleRounds} // one that forgets
		turn, _ := runPace(&p, 1, idleTurns, slice)
		careless += turn
	}
	if careless < 10*time.Second {
		t.Errorf("control: 10000 idle turns took only %v", careless)
	}
}
