package hostcpu

import "github.com/byteexpress/byteexpress/sim/des"

// Class is what a task is done for.
type Class uint8

// The classes of tasks.
const (
	Engine  Class = iota // the messaging engine
	TCP                  // the kernel's TCP stack, system calls and copies
	App                  // the application
	Classes              // how many there are
)

// String is the name of the class.
func (c Class) String() string {
	return [...]string{"engine", "tcp", "app", "?"}[min(c, Classes)]
}

// CPU is the cores of a host.
type CPU struct {
	free   []des.Time // by core: when its tasks are done
	busy   [Classes]des.Time
	factor int64 // of all costs, in percent
}

// New makes a processor with one or more cores.
func New(cores int) *CPU { return &CPU{free: make([]des.Time, max(cores, 1)), factor: 100} }

// Cores is how many cores there are.
func (c *CPU) Cores() int { return len(c.free) }

// Do gives a core a task, behind those that it has, and says when it ends. Cores are
// numbered from 0, and around after the last.
func (c *CPU) Do(core int, class Class, now, cost des.Time) (end des.Time) {
	f := &c.free[core%len(c.free)]
	cost = cost * des.Time(c.factor) / 100
	*f = max(*f, now) + cost
	c.busy[class] += cost
	return *f
}

// Free is when a core has done all its tasks.
func (c *CPU) Free(core int) des.Time { return c.free[core%len(c.free)] }

// Busy is how much time all cores together were given tasks of a class for.
func (c *CPU) Busy(class Class) des.Time { return c.busy[class] }

// SetSpeed makes the tasks to come take that many percent of their time: 100 is as
// ever, 1000 a processor that is ten times as slow.
func (c *CPU) SetSpeed(percent int) { c.factor = int64(max(percent, 1)) }
