package benode

import (
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// TestDeviceCounts: a simulated device tells what it sent again.
func TestDeviceCounts(t *testing.T) {
	dev, err := sim.Open("sim:")
	if err != nil {
		t.Fatal(err)
	}
	n, err := Open(dev, be.Config{}, false)
	if err != nil {
		t.Fatal(err)
	}
	m := n.DeviceCounts()
	for _, name := range []string{"device_retransmissions", "device_rnr", "device_cq_overflows"} {
		if v, ok := m[name]; !ok || v != 0 {
			t.Errorf("%s = %d, %v", name, v, ok)
		}
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}
