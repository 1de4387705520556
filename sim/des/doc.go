// Package des is a discrete-event kernel: a virtual clock in picoseconds, a queue
// of events, and random streams. One [Kernel] is one simulation and belongs to one
// goroutine; nothing here starts another or asks for the real time.
//
//	k := des.New()
//	tick := k.Handle(func(a, b int32) { ... })
//	k.At(5*des.Microsecond, tick, 1, 0)
//	err := k.Run(des.Second)
//
// Events at the same time run in the order in which they were scheduled, so a run
// depends on nothing but its input. An event is 32 bytes without a pointer: what
// it is about is named by two numbers, which index the handler's own tables.
//
// # Cancelling
//
// An event cannot be taken out of the queue. Its owner puts a generation into b
// and moves on to the next one to cancel: an event of an old generation is then
// dropped by the handler when it comes. Owners keep few events pending, one for
// the earliest thing that they wait for; the cost of an event grows with how many
// are pending.
package des
