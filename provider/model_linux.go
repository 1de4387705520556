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
	return mlx5.NewObserved(m.System(), m.Node(), m), nil
}
