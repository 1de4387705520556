package ps_test

import (
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/ps"
	"github.com/byteexpress/byteexpress/sim"
)

// TestAgainOfUnsent: a push that could not be sent, for want of memory, is applied when it
// is repeated: it is not taken for the push before it.
func TestAgainOfUnsent(t *testing.T) {
	const dim, keys = 256, 16000
	fabric := sim.NewFabric(sim.Config{})
	dev, err := fabric.NewDevice("sim:client", sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	server := simNode(t, fabric, "sim:server")
	tr := transport{"be", func(testing.TB) archon.Transport { return server }, nodeOn(t, dev)}
	_, c := tr.start(t, 1, ps.Config{Dim: dim, LearningRate: 1})
	p := &ps.PushCall{}
	over := make(chan struct{}, 1)
	push := func(n int, again bool) error {
		p.Keys, p.Gradients, p.Again = keyRange(n), make([]float32, n*dim), again
		for i := range p.Gradients {
			p.Gradients[i] = -1
		}
		c.GoPush(p, func(*ps.PushCall) { over <- struct{}{} })
		<-over
		return p.Err
	}
	if err := push(1, false); err != nil {
		t.Fatal(err)
	}
	dev.RefuseRegistrations(-1)
	if err := push(keys, false); err == nil {
		t.Fatal("control: there is memory")
	}
	if err := push(keys, true); err == nil {
		t.Fatal("control: there is memory")
	}
	dev.RefuseRegistrations(0)
	for try := 0; ; try++ { // for a while it is not asked for
		err := push(keys, true)
		if err == nil {
			break
		}
		if try == 1000 {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := push(keys, true); err != nil { // one that was applied
		t.Fatal(err)
	}
	f, err := c.Fetch(t.Context(), keyRange(keys))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	for i := range keys {
		want := float32(1)
		if i == 0 {
			want = 2
		}
		if v := f.Row(i)[0]; v != want {
			t.Fatalf("row %d is %v, want %v", i, v, want)
		}
	}
}
