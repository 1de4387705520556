package provider

import (
	"strings"

	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// simulatedDefault is the name of a simulated device of this process's own fabric.
const simulatedDefault = sim.Prefix

func isSimulated(name string) bool { return strings.HasPrefix(name, sim.Prefix) }

func openSimulated(name string) (verbs.Device, error) { return sim.Open(name) }
