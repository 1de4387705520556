package bemalloc_test

import (
	"fmt"
	"log"
	"sync/atomic"
	"testing"

	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/verbs"
)

// counting counts registrations of a real device.
type counting struct {
	verbs.PD
	calls atomic.Int64
}

func (c *counting) Register(buf []byte, access mr.Access) (mr.Region, error) {
	c.calls.Add(1)
	return c.PD.Register(buf, access)
}

// openPD opens a protection domain of the named device until the test ends.
func openPD(t *testing.T, name string) verbs.PD {
	t.Helper()
	dev, err := provider.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ctx.Close(); err != nil {
			t.Error(err)
		}
	})
	pd, err := ctx.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pd.Close(); err != nil {
			t.Error(err)
		}
	})
	return pd
}

// steadyOn runs a load with real registrations: after warm-up there are none.
func steadyOn(t *testing.T, name string) {
	pd := &counting{PD: openPD(t, name)}
	p, err := bemalloc.New(bemalloc.Config{Registrar: pd, Access: mr.LocalWrite | mr.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	var live [64][]byte
	round := func() {
		for i := range live {
			if err := p.Free(live[i]); err != nil {
				t.Fatal(err)
			}
			b, err := p.Alloc(1 + i*i*i%(300<<10))
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.MR(b)
			if err != nil || r.LKey == 0 && r.RKey == 0 || !r.Contains(mr.Addr(b), uint64(len(b))) {
				t.Fatalf("region of %d bytes: %v, %v", len(b), r, err)
			}
			live[i] = b
		}
	}
	for range 100 {
		round()
	}
	before := pd.calls.Load()
	for range 1000 {
		round()
	}
	if n := pd.calls.Load() - before; before == 0 || n != 0 {
		t.Errorf("%d registrations at first, %d in steady state", before, n)
	}
	for _, b := range live {
		if err := p.Free(b); err != nil {
			t.Error(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestSteadyStateOnSim(t *testing.T) { steadyOn(t, "sim:") }

func TestSteadyStateOnDevice(t *testing.T) { steadyOn(t, testdev.Name(t)) }

// Buffers lie in regions that the device knows: MR gives the keys for a work
// request, at no cost.
func ExamplePool_MR() {
	dev, err := provider.Open("sim:")
	if err != nil {
		log.Fatal(err)
	}
	ctx, err := dev.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer ctx.Close()
	pd, err := ctx.AllocPD()
	if err != nil {
		log.Fatal(err)
	}
	defer pd.Close()
	pool, err := bemalloc.New(bemalloc.Config{Registrar: pd, Access: mr.LocalWrite})
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	a, err := pool.Alloc(1000)
	if err != nil {
		log.Fatal(err)
	}
	b, err := pool.Alloc(70_000)
	if err != nil {
		log.Fatal(err)
	}
	ra, err := pool.MR(a[500:]) // any part of a buffer
	if err != nil {
		log.Fatal(err)
	}
	rb, err := pool.MR(b)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ra.LKey == rb.LKey, rb.Contains(mr.Addr(b), uint64(len(b))), pool.Stats().Regions)
	fmt.Println(pool.Free(a), pool.Free(b))
	// Output:
	// true true 1
	// <nil> <nil>
}
