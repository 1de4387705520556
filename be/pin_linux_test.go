package be_test

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// TestPinnedWorkers: each worker's callbacks run on its CPU only, and no other thread
// is held to one.
func TestPinnedWorkers(t *testing.T) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	var cpus []int
	for cpu := 0; cpu < 1024 && len(cpus) < 2; cpu++ {
		if allowed.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	p := newPairOn(t, simDefaults, be.Config{}, be.Config{Workers: 2, PinCPUs: cpus})
	seen := map[int]bool{}
	for range 4 {
		_, c := p.connect(t, "x")
		where := make(chan unix.CPUSet, 1)
		if err := c.Post(nil, func(error) {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(0, &set); err != nil {
				t.Error(err)
			}
			where <- set
		}); err != nil {
			t.Fatal(err)
		}
		set := <-where
		if set.Count() != 1 {
			t.Errorf("a worker may run on %d CPUs", set.Count())
		}
		for _, cpu := range cpus {
			if set.IsSet(cpu) {
				seen[cpu] = true
			}
		}
	}
	if len(seen) != len(cpus) {
		t.Errorf("the workers ran on %v, want each of %v", seen, cpus)
	}
	var now unix.CPUSet
	if err := unix.SchedGetaffinity(0, &now); err != nil || now != allowed {
		t.Errorf("the test's own thread may run on %d CPUs, %d before; %v", now.Count(), allowed.Count(), err)
	}
}

// TestPinRefused: a CPU that there is not is an error, and nothing stays open.
func TestPinRefused(t *testing.T) {
	dev, err := sim.NewFabric(sim.Config{}).NewDevice("a", sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	if allowed.IsSet(1023) {
		t.Skip("this machine has 1024 CPUs")
	}
	if _, err := be.NewNode(ctx, be.Config{PinCPUs: []int{1023}}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("error %v, want EINVAL", err)
	}
	var typed *be.ConfigError
	if _, err := be.NewNode(ctx, be.Config{PinCPUs: []int{-1}}); !errors.As(err, &typed) {
		t.Errorf("error %v, want a ConfigError", err)
	}
	if err := ctx.Close(); err != nil {
		t.Errorf("left behind: %v", err)
	}
}
