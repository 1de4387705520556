//go:build linux

package rxe_test

import (
	"fmt"

	"github.com/byteexpress/byteexpress/provider/rxe"
	"github.com/byteexpress/byteexpress/uverbs"
)

// Open every Soft-RoCE device and print a limit of it. Programs rather open
// devices by name, with package provider.
func Example() {
	var kernel uverbs.System
	devs, err := kernel.Devices()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range devs {
		if d.Driver != uverbs.DriverRXE {
			continue
		}
		ctx, err := rxe.New(&kernel, d).Open()
		if err != nil {
			fmt.Println(err)
			continue
		}
		attr, err := ctx.Attr()
		fmt.Println(d.Name, attr.MaxQP, err)
		ctx.Close()
	}
}
