package testmodel

import (
	"testing"

	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

func mlx5On(t testing.TB, hw *sim.Device) verbs.Device {
	m, d := provider.ModelOf(hw)
	t.Cleanup(func() {
		for _, f := range m.Faults() {
			t.Error(f)
		}
	})
	return d
}
