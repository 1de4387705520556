package be_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// spiedPair is a pair on a device, whose second node's queue pairs are known.
func spiedPair(t *testing.T, name string, cfg be.Config) (*pair, *spy) {
	t.Helper()
	p := &pair{}
	var s *spy
	for i := range p.nodes {
		dev, err := provider.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		s = spyOn(t, dev)
		p.nodes[i] = nodeIn(t, s, cfg)
	}
	var err error
	if p.listener, err = p.nodes[0].Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return p, s
}

// struck says that a fault hit while the device had requests: each message ends once,
// most with an error, the sockets hear, and memory is as before.
func struck(t *testing.T, n *be.Node, s *be.Socket, l *load, before int64) {
	t.Helper()
	eventually(t, "every message ends", func() bool { return l.ended() == len(l.calls) })
	if b, err := s.Recv(limit(t)); err == nil {
		t.Errorf("a message of %d bytes after the fault", len(b))
	}
	t.Logf("%d of %d messages failed; the socket: %v", l.failed.Load(), len(l.calls), s.Err())
	if l.failed.Load() == 0 {
		t.Error("no message failed: the fault came too late to show anything")
	}
	s.Close()
	eventually(t, "no engine left", func() bool { return n.Stats().Engines == 0 })
	if in := n.Stats().Memory.InUseBytes; in != before {
		t.Errorf("%d bytes are in use, %d before the dial", in, before)
	}
	l.once(t)
}

// strike has a fault hit while the second node has 64 requests and more at its device. It
// gives the error that the socket ended with; the receiver hears too.
func strike(t *testing.T, p *pair, fault func()) error {
	t.Helper()
	before := p.nodes[1].Stats().Memory.InUseBytes
	server, client := p.connect(t, "x")
	errs := make(chan error, 1)
	go func() { errs <- sink(p.nodes[0], server) }()
	var l load
	l.post(t, client, outstanding, 1<<20)
	eventually(t, "requests at the device", func() bool { return inFlight(p.nodes[1]) >= outstanding })
	fault()
	struck(t, p.nodes[1], client, &l, before)
	if err := <-errs; err == nil {
		t.Error("the receiver heard nothing")
	}
	server.Close()
	return client.Err()
}

// TestDeviceQPError: the queue pair goes to the error state with 64 requests and more at
// the device.
func TestDeviceQPError(t *testing.T) {
	p, s := spiedPair(t, testdev.Name(t), deep)
	err := strike(t, p, func() {
		if err := s.made()[0].Modify(&qp.Attr{State: qp.Err}, qp.MaskState); err != nil {
			t.Fatal(err)
		}
	})
	if !errors.Is(err, cq.WRFlushError) {
		t.Errorf("the socket ended with %v", err)
	}
	again, newClient := p.connect(t, "again")
	exchange(t, newClient, again, 100_000, 2)
}

// burstRate is how many messages of 256 KiB a second go from one socket to another, in the
// best of some bursts of n.
func burstRate(t *testing.T, from, to *be.Socket, bursts, n int) (best float64) {
	t.Helper()
	for range bursts {
		start := time.Now()
		var l load
		l.post(t, from, n, 256<<10)
		for range n {
			b, err := to.Recv(limit(t))
			if err != nil {
				t.Fatal(err)
			}
			to.Node().Free(b)
		}
		best = max(best, float64(n)/time.Since(start).Seconds())
		eventually(t, "every message ends", func() bool { return l.ended() == n })
	}
	return best
}

// TestDevicePortDownAndUp (case C17): the interface below the device goes down under load
// and comes back, with the address at another GID index. Messages then go at the rate of
// before: on an emulated machine, no less than a third of it. In the control, with a
// small window and fragments, they do not.
func TestDevicePortDownAndUp(t *testing.T) {
	name := testdev.Name(t)
	link := testdev.Interface(t, name)
	p, _ := spiedPair(t, name, deep)
	const bursts, n = 5, 8
	rateOf := func(cfg be.Config, bursts, n int) float64 {
		q, _ := spiedPair(t, name, cfg)
		server, client := q.connect(t, "rate")
		return burstRate(t, client, server, bursts, n)
	}
	before := rateOf(deep, bursts, n)
	if slow := rateOf(be.Config{WindowBytes: 512, FragmentBytes: 512}, 1, 2); slow > before/3 {
		t.Errorf("control: %.1f messages a second with a small window, %.1f otherwise", slow, before)
	}
	old := gidOfIPv4(t, name)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	strike(t, p, func() { must(netlink.LinkSetDown(link)) })
	// Another address takes the index of ours, which comes back behind it.
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil || len(addrs) == 0 {
		t.Fatalf("addresses of %s: %v %v", link.Attrs().Name, addrs, err)
	}
	ours := addrs[0]
	other, err := netlink.ParseAddr("10.99.0.9/24")
	must(err)
	must(netlink.AddrDel(link, &ours))
	eventually(t, "the GID goes", func() bool { return gidOfIPv4(t, name).GID != old.GID })
	must(netlink.LinkSetUp(link))
	must(netlink.AddrAdd(link, other))
	eventually(t, "the other address is a GID", func() bool { return gidOfIPv4(t, name).GID[12] == 10 })
	must(netlink.AddrAdd(link, &ours))
	eventually(t, "ours is one again", func() bool {
		return strings.Contains(gidList(t, name), old.GID.String())
	})
	t.Logf("GIDs: before, ours at index %d; now:\n%s", old.Index, gidList(t, name))
	again, newClient := p.connect(t, "again")
	exchange(t, newClient, again, 100_000, 2)
	after := burstRate(t, newClient, again, bursts, n)
	t.Logf("%.1f messages of 256 KiB a second before, %.1f after: %.2f", before, after, after/before)
	if after < before/3 {
		t.Error("messages are much slower after the port came back")
	}
}

// gidOfIPv4 gives the first GID of the device's port that is an IPv4 address.
func gidOfIPv4(t *testing.T, name string) (found verbs.GIDEntry) {
	t.Helper()
	for _, g := range gids(t, name) {
		if g.GID[10] == 0xff && g.GID[11] == 0xff && g.Type == verbs.GIDRoCEv2 {
			return g
		}
	}
	return found
}

func gidList(t *testing.T, name string) string {
	var b strings.Builder
	for _, g := range gids(t, name) {
		b.WriteString(g.GID.String() + " at " + string(rune('0'+g.Index)) + " " + g.Type.String() + "\n")
	}
	return b.String()
}

func gids(t *testing.T, name string) []verbs.GIDEntry {
	t.Helper()
	dev, err := provider.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ctx.Close()
	list, err := ctx.GIDs(1)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestDeviceRemovedUnderLoad: the interface below the device is deleted, and the device
// with it, while it has 64 requests and more; another one of the same kind works. (The
// device alone could not be: the kernel keeps it, working, until nobody has it open.)
func TestDeviceRemovedUnderLoad(t *testing.T) {
	_ = testdev.Name(t)
	const ifname, name = "betest0", "rxebe0"
	link := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: ifname, MTU: 4200}}
	if err := netlink.LinkAdd(link); err != nil {
		t.Skipf("a network interface of our own: %v", err)
	}
	gone := false
	t.Cleanup(func() {
		if !gone {
			_ = netlink.LinkDel(link)
		}
	})
	a, err := netlink.ParseAddr("10.78.0.1/24")
	if err == nil {
		err = netlink.AddrAdd(link, a)
	}
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.RdmaLinkAdd(name, "rxe", ifname); err != nil {
		t.Skipf("a software device of our own: %v", err)
	}
	eventually(t, "the address is a GID", func() bool { return gidOfIPv4(t, name).GID[12] == 10 })
	removed := make(chan error, 1)
	t.Run("load", func(t *testing.T) { // whose end closes the nodes
		p, _ := spiedPair(t, name, deep)
		strike(t, p, func() {
			gone = true
			go func() { removed <- netlink.LinkDel(link) }() // which waits until nobody has the device open
		})
		if _, err := p.nodes[1].Dial(limit(t), p.listener.Addr().String(), "x"); err == nil {
			t.Error("a dial on a device that is gone")
		}
	})
	if err := <-removed; err != nil {
		t.Errorf("removal: %v", err)
	}
	p := newDevicePair(t, be.Config{}) // the lab's own
	server, client := p.connect(t, "elsewhere")
	exchange(t, client, server, 100_000, 2)
}

// TestDevicePeerKilled ends the peer's process with 64 requests and more at the device:
// by SIGKILL, which the connection to it tells, and by SIGSTOP, after which it neither
// answers nor ends, and only its silence tells.
func TestDevicePeerKilled(t *testing.T) {
	for _, silent := range []bool{false, true} {
		t.Run(map[bool]string{false: "killed", true: "silent"}[silent], func(t *testing.T) {
			cfg, signal := deep, syscall.SIGKILL
			if silent {
				signal = syscall.SIGSTOP
				cfg.Keepalive, cfg.PeerTimeout = 300*time.Millisecond, 3*time.Second
			}
			p, _ := spiedPair(t, testdev.Name(t), cfg)
			before := p.nodes[1].Stats().Memory.InUseBytes
			cmd, addr := victim(t, "tcp")
			client, err := p.nodes[1].Dial(limit(t), addr, "x")
			if err != nil {
				t.Fatal(err)
			}
			b := alloc(t, p.nodes[1], 100_000, 1)
			if err := client.Send(limit(t), b); err != nil {
				t.Fatal(err)
			}
			p.nodes[1].Free(b)
			if b, err = client.Recv(limit(t)); err != nil { // it lives
				t.Fatal(err)
			}
			check(t, b, 100_000, 1)
			p.nodes[1].Free(b)
			var l load
			l.post(t, client, 4*outstanding, 1<<18)
			eventually(t, "requests at the device", func() bool { return inFlight(p.nodes[1]) >= outstanding })
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			heard := hearIn(client, 4, time.Second)
			for range 4 { // the kernel of a process that is stopped takes what there are receives for
				if err := <-heard; err == nil && !silent {
					t.Error("a message to a dead process was sent well")
				}
			}
			for { // what it had echoed before
				b, err := client.Recv(limit(t))
				if err != nil {
					break
				}
				p.nodes[1].Free(b)
			}
			if silent && !errors.Is(client.Err(), be.ErrPeerTimeout) {
				t.Errorf("the socket ended with %v", client.Err())
			}
			struck(t, p.nodes[1], client, &l, before)
			_, addr = victim(t, "tcp")
			if client, err = p.nodes[1].Dial(limit(t), addr, "x"); err != nil {
				t.Fatalf("dial to the next process: %v", err)
			}
			b = alloc(t, p.nodes[1], 100, 1)
			if err := client.Send(limit(t), b); err != nil {
				t.Fatal(err)
			}
			p.nodes[1].Free(b)
			if b, err = client.Recv(limit(t)); err != nil {
				t.Fatal(err)
			}
			p.nodes[1].Free(b)
		})
	}
}
