package sim_test

import (
	"fmt"

	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// A fabric with one NIC whose limits and faults a test chooses. The example of
// package verbs moves data between two.
func Example() {
	fabric := sim.NewFabric(sim.Config{Seed: 1})
	defer fabric.Close()
	device, err := fabric.NewDevice("nic0", sim.DeviceConfig{Limits: verbs.DeviceAttr{MaxQPWR: 64}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, err := device.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ctx.Close()
	attr, err := ctx.Attr()
	if err != nil {
		fmt.Println(err)
		return
	}
	port, err := ctx.Port(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	gids, err := ctx.GIDs(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(attr.MaxQPWR, port.State, port.LinkLayer, port.ActiveMTU)
	for _, g := range gids {
		fmt.Println(g.Index, g.Type, g.GID)
	}
	// Output:
	// 64 ACTIVE Ethernet 4096
	// 0 RoCE v2 fe80::200:ff:fe00:1
	// 1 RoCE v2 ::ffff:10.0.0.1
}
