package verbs_test

import (
	"errors"
	"fmt"

	"github.com/byteexpress/byteexpress/verbs"
)

// A RoCE v2 GID is an IP address; hellos carry it as text.
func ExampleGID() {
	var g verbs.GID
	if err := g.UnmarshalText([]byte("10.9.0.1")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g, g.Addr(), g.IsIPv4())
	// Output: ::ffff:10.9.0.1 10.9.0.1 true
}

func ExampleDeviceAttr_CheckCQ() {
	attr := verbs.DeviceAttr{MaxCQE: 32768, CompVectors: 2}
	err := attr.CheckCQ(verbs.CQConfig{Entries: 100000})
	fmt.Println(err)
	fmt.Println(errors.Is(err, verbs.ErrLimit))
	// Output:
	// beyond the device's limit: 100000 CQ entries, must be 1 to 32768
	// true
}
