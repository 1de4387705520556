// Package hostcpu is the processor of a simulated host: cores that work off tasks
// in order, and what the tasks of a messaging engine and of a TCP stack cost.
//
//	cpu := hostcpu.New(16)
//	end := cpu.Do(3, hostcpu.TCP, now, 2*des.Microsecond)
//
// A task starts when its core is free and has its effect at its end; whoever
// schedules it has an event at that time. The package itself has no events.
package hostcpu
