package scenario_test

import (
	"fmt"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/scenario"
)

// An incast of 32 hosts, with a send window and without, for two milliseconds of virtual
// time.
func Example() {
	s, err := scenario.Load("incast")
	if err == nil {
		err = s.Scale(33)
	}
	if err == nil {
		err = s.SetDuration(2 * des.Millisecond)
	}
	if err == nil {
		err = s.Pick([]string{"dcqcn", "static"})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, job := range s.Jobs() {
		run, err := job.Run(nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %d hosts, pauses: %v\n", run.Variant, run.Hosts, run.Counter("pauses") > 0)
	}
	// Output:
	// dcqcn: 33 hosts, pauses: true
	// static: 33 hosts, pauses: false
}
