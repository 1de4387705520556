package provider

import (
	"sync"

	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
	"github.com/byteexpress/byteexpress/verbs"
)

// models are the modelled NICs of this process, by name.
var models = struct {
	sync.Mutex
	byName map[string]*mlx5dev.Device
}{byName: map[string]*mlx5dev.Device{}}

// openModel gives the modelled NIC of a name, made at first use, driven by the
// provider of the real ones.
func openModel(name string) (verbs.Device, error) {
	models.Lock()
	defer models.Unlock()
	m := models.byName[name]
	if m == nil {
		hw, err := sim.Default().NewDevice(name, mlx5dev.SimConfig())
		if err != nil {
			return nil, err
		}
		m = mlx5dev.New(hw, mlx5dev.Config{})
		models.byName[name] = m
	}
	return drive(m), nil
}

// ModelOf gives a model of a ConnectX NIC on top of a simulated one, and the device
// by which the provider of the real ones drives it. Make the simulated NIC with
// [mlx5dev.SimConfig] if it is to have all of the model's limits. Tests ask the
// model for its faults.
func ModelOf(hw *sim.Device) (*mlx5dev.Device, verbs.Device) {
	m := mlx5dev.New(hw, mlx5dev.Config{})
	return m, drive(m)
}

func drive(m *mlx5dev.Device) verbs.Device { return mlx5.NewObserved(m.System(), m.Node(), m) }
