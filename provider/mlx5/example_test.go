//go:build linux

package mlx5_test

import (
	"fmt"

	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
)

// A program opens devices by name with package provider ("mlx5_0"; "sim:mlx5" is
// what this example makes by hand): a model of a NIC, on a simulated NIC, and the
// provider on top of it.
func Example() {
	fabric := sim.NewFabric(sim.Config{})
	defer fabric.Close()
	hw, err := fabric.NewDevice("mlx5_0", mlx5dev.SimConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	model := mlx5dev.New(hw, mlx5dev.Config{})
	dev := mlx5.NewObserved(model.System(), model.Node(), model)
	ctx, err := dev.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ctx.Close()
	attr, err := ctx.Attr()
	fmt.Println(dev.Info().Provider, attr.MaxInline, "inline bytes at most,", err)
	fmt.Println(len(model.Faults()), "rules broken")
	// Output:
	// mlx5 828 inline bytes at most, <nil>
	// 0 rules broken
}
