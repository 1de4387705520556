// Package testmodel lets suites that run on simulated NICs run on models of real
// ones as well.
package testmodel

import (
	"os"
	"testing"

	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// Env is the environment variable that names the model to run on: "mlx5" for a
// ConnectX NIC. Without it suites run on the simulated NICs themselves.
const Env = "SIM_MODEL"

// Active reports whether suites run on a model.
func Active() bool { return os.Getenv(Env) != "" }

// On gives the device to test on: the simulated NIC itself, or the model on top of
// it, driven by the provider of the real ones. When the test ends, the model must
// have seen no rule broken.
func On(t testing.TB, hw *sim.Device) verbs.Device {
	t.Helper()
	switch m := os.Getenv(Env); m {
	case "":
		return hw
	case "mlx5":
		return mlx5On(t, hw)
	default:
		t.Fatalf("%s=%s: there is no such model, only mlx5", Env, m)
		return nil
	}
}
