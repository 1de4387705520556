//go:build linux

package provider_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/internal/testhost"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

func rank(t *testing.T, nics ...testhost.NIC) []provider.Candidate {
	t.Helper()
	if !mmio.HasBarriers {
		t.Skip("no barriers for device memory on this processor")
	}
	all, err := provider.RankOf(testhost.New(t, nics...).Verbs)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func port(host byte, change func(*sim.Port)) sim.Port {
	p := testhost.Port(host)
	change(&p)
	return p
}

// Hardware comes before software, the faster before the slower, and what cannot be
// used comes last; everything has a reason.
func TestRank(t *testing.T) {
	slow := port(1, func(p *sim.Port) { p.SpeedGbps = 40 })
	down := port(2, func(p *sim.Port) { p.State = verbs.PortDown })
	bare := port(3, func(p *sim.Port) { p.GIDs = []sim.GID{} })
	all := rank(t,
		testhost.NIC{Name: "soft", Parent: "eth0"},
		testhost.NIC{Name: "slow", Ports: []sim.Port{slow}},
		testhost.NIC{Name: "second", Ports: []sim.Port{down, testhost.Port(7)}},
		testhost.NIC{Name: "down", Ports: []sim.Port{port(8, func(p *sim.Port) { p.State = verbs.PortDown })}},
		testhost.NIC{Name: "bare", Ports: []sim.Port{bare}},
		testhost.NIC{Name: "denied", Denied: true},
		testhost.NIC{Name: "gone", NoNode: true},
		testhost.NIC{Name: "foreign", Driver: "hfi1"},
		testhost.NIC{Name: "newer", ABI: 3},
	)
	want := []struct {
		name string
		rank int
		why  string
	}{
		{"second", 1, "hardware, port 2 is ACTIVE, 100 Gbit/s"},
		{"slow", 2, "hardware, port 1 is ACTIVE, 40 Gbit/s"},
		{"soft", 3, "software on eth0, port 1 is ACTIVE, 100 Gbit/s"},
		{"bare", 0, "no port can be used: port 1 is ACTIVE, but has no GID: its network interface has no address"},
		{"denied", 0, "permission denied"},
		{"down", 0, "no port can be used: port 1 is DOWN, not ACTIVE"},
		{"foreign", 0, "driver hfi1 (kernel ABI version 1): not supported by this program: use a device of one of these drivers: mlx5 (ABI 1), rxe (ABI 1 to 2)"},
		{"gone", 0, "no device node"},
		{"newer", 0, "another ABI of driver mlx5_core (kernel ABI version 3)"},
	}
	if len(all) != len(want) {
		t.Fatalf("%d candidates: %+v", len(all), all)
	}
	for i, w := range want {
		c := all[i]
		if c.Name != w.name || c.Rank != w.rank || !strings.Contains(c.Why, w.why) || (c.Device != nil) != (c.Err == nil) {
			t.Errorf("candidate %d: %s, rank %d, %q, device %v; want %s, rank %d, %q", i, c.Name, c.Rank, c.Why, c.Device, w.name, w.rank, w.why)
		}
	}
	if p := all[0].Ports; len(p) != 2 || p[0].Port != 1 || p[0].Rank != 0 || p[1].Port != 2 || p[1].Rank != 1 {
		t.Errorf("ports of %s: %+v", all[0].Name, p)
	}
}

// Entries of other containers are listed with the reason, and have no rank.
func TestRankOfGIDs(t *testing.T) {
	p := testhost.Port(1)
	for i := 2; i < 8; i++ {
		g := p.GIDs[1]
		g.Index, g.GID[15] = i, byte(i+1)
		if i == 5 || i == 7 {
			g.NetDev, g.IfIndex = "pod", 40+i
		}
		if i == 6 {
			g.Type = verbs.GIDRoCEv1
		}
		p.GIDs = append(p.GIDs, g)
	}
	all := rank(t, testhost.NIC{Name: "mlx5_0", Ports: []sim.Port{p}})
	if len(all) != 1 || all[0].Rank != 1 {
		t.Fatalf("%+v", all)
	}
	var ranks []int
	for _, g := range all[0].Ports[0].GIDs {
		ranks = append(ranks, g.Rank)
		if g.Why == "" || g.Rank == 0 && g.Why != "its network interface pod is not in this network namespace" {
			t.Errorf("GID %d: rank %d, %q", g.Index, g.Rank, g.Why)
		}
	}
	if want := []int{5, 1, 2, 3, 4, 0, 6, 0}; !slices.Equal(ranks, want) {
		t.Errorf("ranks by index: %v, want %v", ranks, want)
	}
}

// Of four devices that sysfs lists two can be opened; the other two do not stand
// in their way. With another version of the ABI none can, and one line says so.
func TestFourDevicesTwoNodes(t *testing.T) {
	if !mmio.HasBarriers {
		t.Skip("no barriers for device memory on this processor")
	}
	h := testhost.New(t, testhost.NIC{Name: "mlx5_0"}, testhost.NIC{Name: "mlx5_1", NoNode: true}, testhost.NIC{Name: "mlx5_2"}, testhost.NIC{Name: "mlx5_3", Denied: true})
	usable := func() (names, why []string) {
		all, err := provider.RankOf(h.Verbs)
		if err != nil || len(all) != 4 {
			t.Fatalf("%+v, %v", all, err)
		}
		for _, c := range all {
			if c.Rank > 0 {
				names = append(names, c.Name)
			} else {
				why = append(why, c.Why)
			}
		}
		return names, why
	}
	names, why := usable()
	if !slices.Equal(names, []string{"mlx5_0", "mlx5_2"}) || !strings.Contains(why[0], "no device node") || !strings.Contains(why[1], "permission denied") {
		t.Errorf("usable %q; the others: %q", names, why)
	}
	h.Write("sys/class/infiniband_verbs/abi_version", "7")
	names, why = usable()
	if len(names) != 0 || why[0] != "verbs ABI version 6: not supported by the kernel, which has version 7" {
		t.Errorf("with ABI 7: usable %q; %q", names, why)
	}
}
