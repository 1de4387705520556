package mr_test

import (
	"errors"
	"fmt"

	"github.com/byteexpress/byteexpress/mr"
)

// A peer asked to read 4 KiB at some address: is it in the region that it was
// given the key of?
func ExampleRegion_Contains() {
	r := mr.Region{Addr: 0x10000, Length: 0x2000, LKey: 0x101, RKey: 0x102}
	fmt.Println(r)
	fmt.Println(r.Contains(0x11000, 4096))
	fmt.Println(r.Contains(0x11001, 4096))
	// Output:
	// mr[0x10000+8192 lkey 0x101 rkey 0x102]
	// true
	// false
}

func ExampleAccess_Check() {
	err := mr.RemoteWrite.Check()
	fmt.Println(err)
	fmt.Println(errors.Is(err, mr.ErrAccess))
	fmt.Println((mr.LocalWrite | mr.RemoteWrite).Check())
	// Output:
	// bad access flags: remote-write needs local-write too
	// true
	// <nil>
}
