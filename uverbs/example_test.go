//go:build linux

package uverbs_test

import (
	"fmt"

	"github.com/byteexpress/byteexpress/uverbs"
)

// List the kernel's RDMA devices with the reason for those that cannot be opened.
func Example() {
	var kernel uverbs.System
	devs, err := kernel.Devices()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range devs {
		if err := kernel.Probe(d); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s: driver %v, %d ports\n", d.Name, d.Driver, d.Ports)
	}
}
