// Package testdev tells tests which RDMA device of this host they may use, and knows
// what kernels do wrong there.
package testdev

import (
	"os"
	"testing"
)

// Env is the environment variable that names the device, as "rxe0".
const Env = "RDMA_DEVICE"

// Mark is in the log of every test that asked for a device and got one. The kernel
// lab counts those tests: a suite in which no such test passes has failed.
const Mark = "testdev: device "

// Name gives the device to test on. Without one it skips the test and says how
// to get one.
func Name(t testing.TB) string {
	t.Helper()
	name := os.Getenv(Env)
	if name == "" {
		t.Skipf("%s is not set: `make test` runs this test on an rxe device in a virtual machine; set it to use a device of this host", Env)
	}
	t.Log(Mark + name)
	return name
}
