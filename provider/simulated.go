package provider

import (
	"strings"

	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// simulatedDefault is the name of a simulated device of this process's own fabric.
const simulatedDefault = sim.Prefix

// modelPrefix begins the names of models of ConnectX NICs, which their provider
// drives. They are on the same fabric.
const modelPrefix = sim.Prefix + "mlx5"

func isSimulated(name string) bool { return strings.HasPrefix(name, sim.Prefix) }

func openSimulated(name string) (verbs.Device, error) {
	if name == modelPrefix || strings.HasPrefix(name, modelPrefix+":") {
		return openModel(name)
	}
	return sim.Open(name)
}
