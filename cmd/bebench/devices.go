package main

import (
	"encoding/json"
	"fmt"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/verbs"
)

// deviceEntry is a device in the listing.
type deviceEntry struct {
	Name     string      `json:"name"`
	Driver   string      `json:"driver,omitempty"`
	ABI      int         `json:"abi,omitempty"`
	Provider string      `json:"provider,omitempty"`
	NetDev   string      `json:"netdev,omitempty"`
	Error    string      `json:"error,omitempty"` // why it cannot be used
	Ports    []portEntry `json:"ports,omitempty"`
}

type portEntry struct {
	Port      int        `json:"port"`
	State     string     `json:"state"`
	LinkLayer string     `json:"link_layer"`
	MTUBytes  int        `json:"mtu_bytes,omitempty"`
	MaxMTU    int        `json:"max_mtu_bytes,omitempty"`
	SpeedGbps float64    `json:"speed_gbps,omitempty"`
	GIDs      []gidEntry `json:"gids,omitempty"`
}

type gidEntry struct {
	Index  int    `json:"index"`
	GID    string `json:"gid"`
	Type   string `json:"type"`
	NetDev string `json:"netdev,omitempty"`
	Rank   int    `json:"rank"` // 1: the one that is used by default
}

func newDevices(e *env) *cobra.Command {
	var why bool
	var asJSON string
	c := &cobra.Command{
		Use: "devices", Short: "list the RDMA devices of this machine", Args: noSuchCommand,
		RunE: func(*cobra.Command, []string) error { return listDevices(e, why, asJSON) },
	}
	c.Flags().BoolVar(&why, "why", false, "show which device, port and GID are taken by default, and why")
	c.Flags().StringVar(&asJSON, "json", "", "with -: write JSON to standard output instead")
	return c
}

func listDevices(e *env, why bool, asJSON string) error {
	if asJSON != "" && asJSON != "-" {
		return exit.Usagef("devices: --json %s: only - is possible, standard output", asJSON)
	}
	infos, err := provider.List()
	if err != nil {
		return err
	}
	entries := []deviceEntry{}
	for _, info := range infos {
		entries = append(entries, describeDevice(info))
	}
	if asJSON == "-" {
		enc := json.NewEncoder(e.stdout)
		enc.SetIndent("", "  ")
		return errors.Wrap(enc.Encode(map[string]any{"schema": "bebench-devices/1", "devices": entries}), "JSON")
	}
	if len(entries) == 0 {
		fmt.Fprintln(e.stdout, "no RDMA device of the kernel; the simulator sim: is always there")
	}
	for i := range entries {
		printDevice(e, &entries[i], why)
	}
	if why {
		_, note, err := provider.Default()
		if err != nil {
			return err
		}
		fmt.Fprintln(e.stdout, "default:", note)
		fmt.Fprintln(e.stdout, "GIDs are ranked RoCE v2 first, then IPv4, then routable IPv6, then link-local; rank 1 is used without -x")
	}
	return nil
}

// describeDevice asks a device for its ports; what cannot be asked is in Error.
func describeDevice(info provider.Info) deviceEntry {
	d := deviceEntry{Name: info.Name, Driver: info.Driver, ABI: info.ABI, Provider: info.Provider, NetDev: info.NetDev}
	err := info.Err
	if err == nil {
		err = askPorts(&d)
	}
	if err != nil {
		d.Error = err.Error()
	}
	return d
}

func askPorts(d *deviceEntry) (err error) {
	dev, err := provider.Open(d.Name)
	if err != nil {
		return err
	}
	ctx, err := dev.Open()
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := ctx.Close(); err == nil {
			err = closeErr
		}
	}()
	for n := 1; n <= ctx.Info().Ports; n++ {
		a, err := ctx.Port(n)
		if err != nil {
			return err
		}
		p := portEntry{
			Port: n, State: a.State.String(), LinkLayer: a.LinkLayer.String(), MTUBytes: a.ActiveMTU.Bytes(), MaxMTU: a.MaxMTU.Bytes(), SpeedGbps: a.SpeedGbps,
		}
		gids, err := ctx.GIDs(n)
		if err != nil {
			return err
		}
		p.GIDs = rankedGIDs(gids)
		d.Ports = append(d.Ports, p)
	}
	return nil
}

func rankedGIDs(gids []verbs.GIDEntry) []gidEntry {
	rank := map[int]int{}
	for i, g := range verbs.RankGIDs(gids) {
		rank[g.Index] = i + 1
	}
	var out []gidEntry
	for _, g := range gids {
		out = append(out, gidEntry{Index: g.Index, GID: g.GID.String(), Type: g.Type.String(), NetDev: g.NetDev, Rank: rank[g.Index]})
	}
	return out
}

func printDevice(e *env, d *deviceEntry, why bool) {
	fmt.Fprintf(e.stdout, "%s\n", d.Name)
	fmt.Fprintf(e.stdout, "  driver %s", orNone(d.Driver))
	if d.ABI != 0 {
		fmt.Fprintf(e.stdout, " (ABI %d)", d.ABI)
	}
	fmt.Fprintf(e.stdout, ", provider %s", orNone(d.Provider))
	if d.NetDev != "" {
		fmt.Fprintf(e.stdout, ", on %s", d.NetDev)
	}
	fmt.Fprintln(e.stdout)
	if d.Error != "" {
		fmt.Fprintf(e.stdout, "  cannot be used: %s\n", d.Error)
	}
	for _, p := range d.Ports {
		fmt.Fprintf(e.stdout, "  port %d: %s, %s, MTU %d (at most %d)", p.Port, p.State, p.LinkLayer, p.MTUBytes, p.MaxMTU)
		if p.SpeedGbps > 0 {
			fmt.Fprintf(e.stdout, ", %g Gbit/s", p.SpeedGbps)
		}
		fmt.Fprintln(e.stdout)
		for _, g := range p.GIDs {
			fmt.Fprintf(e.stdout, "    GID %-3d %-40s %s", g.Index, g.GID, g.Type)
			if g.NetDev != "" {
				fmt.Fprintf(e.stdout, " %s", g.NetDev)
			}
			if why {
				fmt.Fprintf(e.stdout, " rank %d", g.Rank)
			}
			fmt.Fprintln(e.stdout)
		}
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
