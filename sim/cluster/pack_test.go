package cluster

import (
	"slices"
	"testing"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

// TestPackInVirtualTime: a message that is alone arrives at the same picosecond whether
// others could go with it or not; of many at once, on several sockets, the last arrives
// earlier, with fewer requests.
func TestPackInVirtualTime(t *testing.T) {
	const sockets, each, size = 16, 100, 64
	measure := func(pack int) (alone, all des.Time, requests uint64) {
		costs := hostcpu.DefaultEngine()
		c := star(t, fabric.Config{Seed: 1}, Config{PackBytes: pack, Costs: &costs}, 2)
		var ks [sockets]*core.Socket
		for i := range ks {
			ks[i] = socket(t, c, 1, 0)
		}
		run(t, c, des.Never)
		got := 0
		var last des.Time
		c.Node(0).App.Message = func(*core.Socket, []byte) {
			got++
			last = c.Now()
		}
		send := func(k *core.Socket) {
			if err := c.Node(1).SendBytes(k, size, nil); err != nil {
				t.Fatal(err)
			}
		}
		start := c.Now()
		send(ks[0])
		run(t, c, des.Never)
		alone, start = last-start, c.Now()
		for range each {
			for _, k := range ks {
				send(k)
			}
		}
		run(t, c, des.Never)
		if got != 1+sockets*each {
			t.Errorf("pack %d: %d messages arrived, %d were sent", pack, got, 1+sockets*each)
		}
		requests = c.Node(1).Stats().Requests
		if st := c.Stats(); st.RNR+st.Failures != 0 || (st.Packed > 0) != (pack > 0) || st.Copies < st.Packed || (st.Copies > 0) != (pack > 0) {
			t.Errorf("pack %d: %+v", pack, st)
		}
		all = last - start
		rest(t, c)
		return alone, all, requests
	}
	alone, all, requests := measure(0)
	alone2, all2, requests2 := measure(1024)
	t.Logf("alone %v and %v, all %v and %v, %d and %d requests", alone, alone2, all, all2, requests, requests2)
	if alone != alone2 {
		t.Errorf("a message alone took %v, and %v where others could go with it", alone, alone2)
	}
	if all2 >= all || requests2 >= requests/4 {
		t.Errorf("all took %v and %d requests, and %v and %d together", all, requests, all2, requests2)
	}
}

// TestPackAndLoss: what the wire loses of messages that went together the NICs send again.
func TestPackAndLoss(t *testing.T) {
	sizes := slices.Repeat([]int{0, 1, 64, 100, 1024, 1025, 3}, 12)
	lost := uint64(0)
	for seed := range uint64(5) {
		c := star(t, fabric.Config{Seed: seed}, Config{AckTimeout: 8, PackBytes: 1024}, 2)
		c.Node(1).Host().SetLoss(0.02)
		exchange(t, c, sizes)
		if c.Stats().Packed == 0 {
			t.Errorf("seed %d: nothing was packed", seed)
		}
		lost += uint64(c.f.Counts().Lost)
		c.Node(1).Host().SetLoss(0)
		rest(t, c)
	}
	if lost == 0 {
		t.Error("nothing was lost: the test shows nothing")
	}
}
