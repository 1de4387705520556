package provider

import (
	"strconv"
	"strings"

	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// simulatedDefault is the name of a simulated device of this process's own fabric.
const simulatedDefault = sim.Prefix

// modelPrefix begins the names of models of ConnectX NICs, which their provider
// drives. They are on the same fabric.
const modelPrefix = sim.Prefix + "mlx5"

// vendorPrefix begins what looks like a model: a plain device of such a name would be
// taken for one.
const vendorPrefix = sim.Prefix + "mlx"

func isSimulated(name string) bool { return strings.HasPrefix(name, sim.Prefix) }

func openSimulated(name string) (verbs.Device, error) {
	if name == modelPrefix || strings.HasPrefix(name, modelPrefix+":") {
		return openModel(name)
	}
	if strings.HasPrefix(name, vendorPrefix) {
		return nil, &verbs.OpError{Op: "open", Device: strconv.Quote(name), Err: verbs.ErrNotFound, Remedy: "the model is " + modelPrefix + " or " + modelPrefix + ":NAME"}
	}
	return sim.Open(name)
}
