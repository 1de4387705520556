package hostcpu_test

import (
	"fmt"
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

func Example() {
	cpu := hostcpu.New(2)
	fmt.Println(cpu.Do(0, hostcpu.TCP, 0, 3*des.Microsecond).Duration())
	fmt.Println(cpu.Do(0, hostcpu.App, des.Microsecond, des.Microsecond).Duration()) // waits for the first
	fmt.Println(cpu.Do(1, hostcpu.App, des.Microsecond, des.Microsecond).Duration()) // does not
	fmt.Println(cpu.Busy(hostcpu.App).Duration())
	// Output:
	// 3µs
	// 4µs
	// 2µs
	// 2µs
}

func TestCores(t *testing.T) {
	c := hostcpu.New(0)
	if c.Cores() != 1 {
		t.Errorf("%d cores, want 1", c.Cores())
	}
	c.SetSpeed(1000)
	if end := c.Do(7, hostcpu.Engine, 5, 10); end != 105 || c.Free(0) != 105 || c.Busy(hostcpu.Engine) != 100 {
		t.Errorf("ten times as slow: ends at %d, free at %d, busy for %d", end, c.Free(0), c.Busy(hostcpu.Engine))
	}
	c.SetSpeed(100)
	if end := c.Do(0, hostcpu.Engine, 500, 10); end != 510 {
		t.Errorf("an idle core ends a task of 10 at %d, want 510", end)
	}
	names := ""
	for k := hostcpu.Engine; k <= hostcpu.Classes; k++ {
		names += k.String() + " "
	}
	if names != "engine tcp app ? " {
		t.Errorf("classes %q", names)
	}
}
