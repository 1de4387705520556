package cluster

import (
	"bytes"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

var cable = fabric.Link{Gbps: 100, Delay: des.Microsecond}

// star is a cluster around one switch, connected from every other node to node 0.
func star(t testing.TB, fc fabric.Config, cfg Config, nodes int) *Cluster {
	t.Helper()
	f, err := fabric.Single(fc, nodes, cable)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(f, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < nodes; i++ {
		if err := c.Connect(i, 0); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func run(t testing.TB, c *Cluster, until des.Time) {
	t.Helper()
	if err := c.Run(until); err != nil {
		t.Fatal(err)
	}
}

// socket opens a socket and runs until it is open.
func socket(t testing.TB, c *Cluster, from, to int) *core.Socket {
	t.Helper()
	opened := false
	c.Node(from).App.Opened = func(_ *core.Socket, err error) {
		if err != nil {
			t.Fatalf("open from %d to %d: %v", from, to, err)
		}
		opened = true
	}
	k, err := c.Node(from).Open(to, "test")
	if err != nil {
		t.Fatal(err)
	}
	for !opened {
		if ran, err := c.f.Kernel().Step(); !ran {
			t.Fatalf("open from %d to %d: nothing comes (%v)", from, to, err)
		}
	}
	return k
}

// pattern fills a message with bytes of its own.
func pattern(b []byte, number int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + number*13)
	}
}

// rest runs to the end and holds the cluster to have given everything back.
func rest(t testing.TB, c *Cluster) {
	t.Helper()
	for _, n := range c.nodes {
		for _, e := range n.engines {
			if !e.isDown {
				e.core.Fail(n.now(), core.ErrClosed)
				n.touch(e)
			}
		}
	}
	run(t, c, des.Never)
	for i, n := range c.nodes {
		for _, e := range n.engines {
			if !e.isDown {
				t.Errorf("node %d: the engine to node %d is not down", i, e.peer)
			}
		}
		if buffers, quota := n.Held(); buffers != 0 || quota != 0 {
			t.Errorf("node %d holds %d buffers and %d bytes of the quota", i, buffers, quota)
		}
	}
	if n := c.f.Counts(); !n.Conserved() || n.Queued != 0 {
		t.Errorf("packets: %+v", n)
	}
	for i := range c.f.Switches() {
		if n := c.f.Switch(i).HeldBytes(); n != 0 {
			t.Errorf("switch %d holds %d bytes", i, n)
		}
	}
}

// exchange sends messages of many sizes both ways between nodes 1 and 0, and wants
// each once, whole and in order.
func exchange(t *testing.T, c *Cluster, sizes []int) {
	t.Helper()
	ends := [2]*Node{c.Node(1), c.Node(0)}
	var ks [2]*core.Socket
	ends[1].App.Incoming = func(k *core.Socket, _ string) { ks[1] = k }
	ks[0] = socket(t, c, 1, 0)
	var got, ended [2]int
	for i, n := range ends {
		n.App.Message = func(_ *core.Socket, b []byte) {
			want := make([]byte, sizes[got[i]%len(sizes)])
			pattern(want, got[i]+1000*i)
			if !bytes.Equal(b, want) {
				t.Errorf("end %d: message %d of %d bytes is wrong (%d bytes)", i, got[i], len(want), len(b))
			}
			got[i]++
		}
		n.App.Failed = func(peer int, err error) { t.Errorf("end %d failed: %v", i, err) }
	}
	for i, n := range ends {
		for m, size := range sizes {
			b, err := n.Alloc(size)
			if err != nil {
				t.Fatal(err)
			}
			pattern(b, m+1000*(1-i))
			err = n.Send(ks[i], b, func(err error) {
				if err != nil {
					t.Errorf("end %d: message %d: %v", i, m, err)
				}
				ended[i]++
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	run(t, c, des.Never)
	for i := range ends {
		if got[i] != len(sizes) || ended[i] != len(sizes) {
			t.Errorf("end %d got %d and sent %d of %d messages", i, got[i], ended[i], len(sizes))
		}
		ends[i].App.Failed = nil
	}
}

var manySizes = []int{0, 1, 100, 4096, 8191, 8192, 8193, 65536, 65537, 300_000, 1 << 20, 3, 2 << 20, 70_000}

func TestMessages(t *testing.T) {
	c := star(t, fabric.Config{Seed: 1}, Config{}, 2)
	exchange(t, c, manySizes)
	s := c.Stats()
	if s.Eager == 0 || s.Rendezvous == 0 || s.RNR != 0 || s.Failures != 0 {
		t.Errorf("%+v", s)
	}
	if n := c.f.Counts(); n.Dropped+n.Lost != 0 {
		t.Errorf("packets: %+v", n)
	}
	rest(t, c)
}

// TestLoss: what the wire loses the NICs send again.
func TestLoss(t *testing.T) {
	for seed := range uint64(10) {
		c := star(t, fabric.Config{Seed: seed}, Config{AckTimeout: 8}, 2)
		c.Node(1).Host().SetLoss(0.01)
		exchange(t, c, manySizes)
		if c.f.Counts().Lost == 0 || c.Node(0).Host().Stats().Retransmits+c.Node(1).Host().Stats().Retransmits == 0 {
			t.Errorf("seed %d: nothing was lost, or nothing sent again", seed)
		}
		c.Node(1).Host().SetLoss(0)
		rest(t, c)
		if t.Failed() {
			return
		}
	}
}

// TestBadConfig: what an engine could not work with is an error.
func TestBadConfig(t *testing.T) {
	f, err := fabric.Single(fabric.Config{Seed: 1, SkipWrites: true}, 2, cable)
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]Config{
		"SendDepth":  {SendDepth: 1},
		"RecvDepth":  {RecvDepth: -1},
		"EagerBytes": {EagerBytes: 100},
		"Window":     {Window: 1000},
		"NodeWindow": {NodeWindow: 1000},
		"MaxMessage": {MaxMessage: -1},
		"MTU":        {MTU: 9},
		"StepDelay":  {StepDelay: -1},
	} {
		if _, err := New(f, cfg); err == nil || !strings.Contains(err.Error(), name+" is") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(f, Config{Fragment: 1 << 20}); err != nil {
		t.Errorf("fragments above the default window: %v", err)
	}
}
