//go:build linux

package inventory

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/internal/testhost"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// machine has an adapter with an entry of another container in its table, one whose
// node may not be opened, and one of a driver that there is no provider for.
func machine(t *testing.T) *uverbs.System {
	t.Helper()
	if !mmio.HasBarriers {
		t.Skip("no barriers for device memory on this processor")
	}
	p := testhost.Port(1)
	pod := p.GIDs[1]
	pod.Index, pod.GID[15], pod.NetDev, pod.IfIndex = 2, 99, "pod7", 9
	p.GIDs = append(p.GIDs, pod)
	h := testhost.New(t, testhost.NIC{Name: "efa_0", Driver: "efa"}, testhost.NIC{Name: "mlx5_0", Ports: []sim.Port{p}}, testhost.NIC{Name: "mlx5_1", Denied: true})
	h.Write("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors", "7")
	h.Write("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "0")
	return h.Verbs
}

func text(t *testing.T, d *Document, detail Detail) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.WriteText(&b, detail); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWhy(t *testing.T) {
	got := text(t, Collect(machine(t)), Why)
	want := `mlx5_0
  driver mlx5_core (ABI 1), provider mlx5, PCI 0000:02:00.0, NUMA node 0, firmware 20.31.1014
  rank 1: hardware, port 1 is ACTIVE, 100 Gbit/s
  port 1: ACTIVE, Ethernet, MTU 4096 (at most 4096), 100 Gbit/s on 4 lanes of EDR, rank 1: ACTIVE, 100 Gbit/s
    GID 0  fe80::1           RoCE v2  eth0  rank 2: RoCE v2, link-local address
    GID 1  ::ffff:10.0.0.1   RoCE v2  eth0  rank 1: RoCE v2, IPv4 address
    GID 2  ::ffff:10.0.0.99  RoCE v2  pod7  rejected: its network interface pod7 is not in this network namespace
efa_0
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got:\n%s\nwant at first:\n%s", got, want)
	}
	for _, line := range []string{
		"  cannot be used: efa_0: open: driver efa (kernel ABI version 1): not supported by this program",
		"  cannot be used: mlx5_1: open /", "permission denied",
		"default: mlx5_0, port 1, GID 1 (hardware, port 1 is ACTIVE, 100 Gbit/s; RoCE v2, IPv4 address)",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("%q is missing in:\n%s", line, got)
		}
	}
}

// A device that may not be opened is listed with what sysfs has.
func TestWithoutPermission(t *testing.T) {
	d := Collect(machine(t)).Devices[2]
	if d.Name != "mlx5_1" || d.Rank != 0 || d.Error == "" || len(d.Ports) != 1 {
		t.Fatalf("device %+v", d)
	}
	if p := d.Ports[0]; p.State != "ACTIVE" || p.LinkLayer != "Ethernet" || p.SpeedGbps != 100 || len(p.GIDs) != 2 || p.GIDs[1].Rank != 0 || p.GIDs[1].NetDev != "eth0" {
		t.Errorf("port %+v", p)
	}
}

func TestFind(t *testing.T) {
	s := machine(t)
	d, err := Find(s, "mlx5_0")
	if err != nil || len(d.Devices) != 1 || d.Devices[0].Name != "mlx5_0" {
		t.Fatalf("%+v, %v", d, err)
	}
	got := text(t, d, Full)
	for _, want := range []string{"uverbs1 231:193", "node GUID 0200:00ff:fe00:0002", "queue pairs ", "port_rcv_errors  7"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "link_downed") {
		t.Errorf("a counter that is 0 is listed:\n%s", got)
	}
	if _, err := Find(s, "mlx5_7"); err == nil || !strings.Contains(err.Error(), "devices here: sim:, mlx5_0, efa_0, mlx5_1") {
		t.Errorf("unknown device: %v", err)
	}
	if d, err = Find(s, "sim:"); err != nil || d.Devices[0].Limits == nil || d.Devices[0].Limits.QP == 0 {
		t.Errorf("sim: %+v, %v", d, err)
	}
}

func TestNoDevice(t *testing.T) {
	d := Collect(testhost.New(t).Verbs)
	if len(d.Devices) != 0 || d.Default.Device != "sim:" || !strings.Contains(text(t, d, Why), "default: sim: (this machine has no RDMA device)") {
		t.Errorf("%+v\n%s", d, text(t, d, Why))
	}
	down := testhost.Port(1)
	down.State = verbs.PortDown
	d = Collect(testhost.New(t, testhost.NIC{Name: "mlx5_0", Ports: []sim.Port{down}}).Verbs)
	if mmio.HasBarriers && (d.Default.Device != "sim:" || !strings.Contains(d.Devices[0].Why, "port 1 is DOWN")) {
		t.Errorf("%+v", d)
	}
}

// Every key of the document is in its description.
func TestDocumentIsDescribed(t *testing.T) {
	docs, err := os.ReadFile("../../../../docs/devices.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Document](), reflect.TypeFor[Choice](), reflect.TypeFor[Device](), reflect.TypeFor[Port](), reflect.TypeFor[GID](), reflect.TypeFor[Limits](),
	} {
		for i := range typ.NumField() {
			key, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(string(docs), "`"+key+"`") {
				t.Errorf("key %q of %v is not in docs/devices.md", key, typ)
			}
		}
	}
	b, err := json.Marshal(Collect(machine(t)))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(b), `{"schema":"bebench-devices/1"`) || strings.Contains(string(b), `"rank":0`) {
		t.Errorf("document %s", b)
	}
}
