// Package cost measures what a piece of work costs this process: CPU time of all
// its threads, user and system, and allocations on the Go heap.
package cost

import (
	"runtime/metrics"
	"time"
)

// Meter is a reading of the process's counters.
type Meter struct {
	cpu    time.Duration
	hasCPU bool
	allocs uint64
	wall   time.Time
}

// Start reads the counters.
func Start() Meter {
	m := Meter{allocs: heapAllocs()}
	m.cpu, m.hasCPU = cpuTime()
	m.wall = time.Now()
	return m
}

// Spent is what was used since a reading.
type Spent struct {
	Wall   time.Duration
	CPU    time.Duration
	HasCPU bool // the system tells the CPU time
	Allocs uint64
}

// Since gives the difference between now and the reading.
func (m Meter) Since() Spent {
	wall := time.Since(m.wall)
	now := Start()
	return Spent{Wall: wall, CPU: now.cpu - m.cpu, HasCPU: m.hasCPU && now.hasCPU, Allocs: now.allocs - m.allocs}
}

// Add sums two pieces of work.
func (s Spent) Add(o Spent) Spent {
	return Spent{s.Wall + o.Wall, s.CPU + o.CPU, s.HasCPU && o.HasCPU || s == Spent{}, s.Allocs + o.Allocs}
}

// Sub takes a part of the work away.
func (s Spent) Sub(o Spent) Spent {
	return Spent{s.Wall - o.Wall, s.CPU - o.CPU, s.HasCPU && o.HasCPU, s.Allocs - o.Allocs}
}

// Busy is the CPU time, or what took as long where the system does not tell it.
func (s Spent) Busy() time.Duration {
	if s.HasCPU {
		return s.CPU
	}
	return s.Wall
}

func heapAllocs() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}
