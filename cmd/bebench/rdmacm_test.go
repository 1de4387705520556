package main

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/verbs"
)

// A simulator has no connection manager, and says so before anything is connected.
func TestNoConnectionManager(t *testing.T) {
	for _, line := range []string{"send bw -R", "atomic lat -R", "msg lat -R", "ps -R -n 1"} {
		bebench(t.Context(), onSim(line)...).want(t, 2, "-R: rdma_cm: not supported by sim:")
	}
	if err := (&chosen{name: "sim:mlx5"}).checkCM(); !errors.Is(err, verbs.ErrUnsupported) {
		t.Errorf("on a model: %v", err)
	}
}

// The two ends must both want it.
func TestRDMACMAtOneEnd(t *testing.T) {
	f := &verbsFlags{}
	f.p.Sizes = []int{1}
	one := f.p.Agreed()
	f.p.CM = true
	if other := f.p.Agreed(); one["rdma_cm"] == other["rdma_cm"] {
		t.Errorf("rdma_cm is %q with and without", one["rdma_cm"])
	}
}
