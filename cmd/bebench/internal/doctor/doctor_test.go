//go:build linux

package doctor

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/internal/testhost"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// checks are those that say ok on a healthy machine: the positive control of each
// case below.
var checks = []string{
	"kernel", "binary", "modules", "netns", "rdma_cm", "memlock", "cgroup", "hugepages", "governor", "device", "node", "iommu", "numa", "port", "gid", "mtu",
	"qos", "counters", "loop",
}

func TestHealthyMachine(t *testing.T) {
	r := healthy(t).run()
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Check)
		if f.Severity != OK || f.Found == "" || f.Remedy != "" {
			t.Errorf("%+v", f)
		}
	}
	if !slices.Equal(got, checks) {
		t.Errorf("checks %q, want %q", got, checks)
	}
	if r.Err() != nil || r.Summary[OK] != len(checks) {
		t.Errorf("%v, %v", r.Err(), r.Summary)
	}
}

// bad is a finding that a broken machine must have.
type bad struct {
	check         string
	severity      Severity
	found, remedy string // words in them
}

func port(change func(*sim.Port)) []testhost.NIC {
	p := testhost.Port(1)
	change(&p)
	return []testhost.NIC{{Name: "mlx5_0", Ports: []sim.Port{p}}}
}

// Each case breaks one thing of a healthy machine, and names all that is not ok then.
var cases = []struct {
	name string
	nics []testhost.NIC
	harm func(*machine)
	want []bad
}{
	{"no subsystem", nil, func(m *machine) { m.Remove("sys/class/infiniband"); m.Remove("sys/class/infiniband_verbs") }, []bad{
		{"modules", Error, "no RDMA subsystem", "modprobe ib_uverbs"}, {"device", Error, "no RDMA device", "rdma link add rxe0 type rxe netdev"}}},
	{"no ib_uverbs", nil, func(m *machine) { m.Remove("sys/class/infiniband_verbs") }, []bad{
		{"modules", Error, "ib_uverbs is not loaded", "modprobe ib_uverbs"}, {"device", Error, "none of 1 devices", "see below"}, {"node", Error, "mlx5_0", "ib_uverbs"}}},
	{"ABI 7", nil, func(m *machine) { m.Write("sys/class/infiniband_verbs/abi_version", "7") }, []bad{
		{"modules", Error, "version 7, this program supports 6", "another kernel"}, {"device", Error, "none of 1", "see below"}, {"provider", Warning, "version 7", ""}}},
	{"no device", nil, func(m *machine) { m.Remove("sys/class/infiniband/mlx5_0") }, []bad{{"device", Error, "no RDMA device", "type rxe netdev"}}},
	{"devices of another namespace", nil, func(m *machine) { m.Remove("sys/class/infiniband/mlx5_0"); m.h.Verbs.Netlink = netnsMode(0) }, []bad{
		{"device", Error, "of other network namespaces", "rdma system set netns shared"}}},
	{"no node", []testhost.NIC{{Name: "mlx5_0", NoNode: true}}, nil, []bad{
		{"device", Error, "none of 1", ""}, {"node", Error, "no device node", "--device"}}},
	{"no permission", []testhost.NIC{{Name: "mlx5_0", Denied: true}}, nil, []bad{
		{"device", Error, "none of 1", ""}, {"permission", Error, "permission denied", "chmod 666"}}},
	{"a container's other devices", []testhost.NIC{{Name: "mlx5_0"}, {Name: "mlx5_1", NoNode: true}, {Name: "mlx5_2", Denied: true}},
		func(m *machine) {
			m.Write("run/.containerenv", "")
			m.Remove("sys/devices/pci0000:00/0000:02:00.0/numa_node")
		}, []bad{
			{"node", Hint, "mlx5_1", "--device"}, {"permission", Hint, "mlx5_2", "--device"}}},
	{"no provider", []testhost.NIC{{Name: "mlx5_0", Driver: "hfi1"}}, nil, []bad{
		{"device", Error, "none of 1", ""}, {"provider", Warning, "driver hfi1 (kernel ABI version 1)", "mlx5 (ABI 1), rxe"}}},
	{"old kernel", nil, func(m *machine) { m.h.Kernel = "4.19.0-27-amd64" }, []bad{{"kernel", Error, "no verbs by ioctl", "5.0 or later"}}},
	{"kernel without dmabuf", nil, func(m *machine) { m.h.Kernel = "5.10.0-32-amd64" }, []bad{{"kernel", Hint, "dmabuf", "5.12 or later"}}},
	{"unknown kernel", nil, func(m *machine) { m.h.Kernel = "custom" }, []bad{{"kernel", Hint, `"custom"`, ""}}},
	{"linked with C", nil, func(m *machine) { m.h.Program = elfFile(elf.PT_INTERP) }, []bad{{"binary", Hint, "C library", "CGO_ENABLED=0"}}},
	{"no rdma_ucm", nil, func(m *machine) { m.Remove("sys/class/misc/rdma_cm"); m.Remove("dev/infiniband/rdma_cm") }, []bad{{"rdma_cm", Hint, "no connection manager", "modprobe rdma_ucm"}}},
	{"no rdma_cm node", nil, func(m *machine) { m.Remove("dev/infiniband/rdma_cm") }, []bad{{"rdma_cm", Hint, "rdma_cm is missing", "--device"}}},
	{"soft memlock", nil, func(m *machine) { m.h.Memlock = Limit{true, 8 << 20, 1 << 30} }, []bad{{"memlock", Warning, "RLIMIT_MEMLOCK is 8 MiB, up to 64 MiB", "ulimit -l 1048576"}}},
	{"memlock of 64 KiB", nil, func(m *machine) { m.h.Memlock = Limit{true, 64 << 10, 64 << 10} }, []bad{{"memlock", Error, "64 KiB, and at most 64 KiB", "limits.conf"}}},
	{"a container's memlock", nil, func(m *machine) { m.h.Memlock = Limit{true, 64 << 10, 64 << 10}; m.Write(".dockerenv", "") }, []bad{
		{"memlock", Error, "64 KiB", "--ulimit memlock=-1"}}},
	{"capability of a user namespace", nil, func(m *machine) {
		m.h.Memlock = Limit{true, 64 << 10, 64 << 10}
		m.Write("proc/self/status", "CapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-3")
		m.Write("proc/self/uid_map", "0 100000 65536")
	}, []bad{{"memlock", Error, "does not count in a user namespace", ""}}},
	{"cgroup", nil, func(m *machine) { m.Write("sys/fs/cgroup/user.slice/rdma.max", "mlx5_0 hca_handle=2 hca_object=100") }, []bad{
		{"cgroup", Warning, "mlx5_0: hca_object is 100 in /sys/fs/cgroup/user.slice/rdma.max", "echo 'mlx5_0 hca_object=max' > /sys/fs/cgroup/user.slice/rdma.max"}}},
	{"cgroup of the parent", nil, func(m *machine) { m.Write("sys/fs/cgroup/rdma.max", "mlx5_0 hca_handle=0 hca_object=max") }, []bad{{"cgroup", Error, "hca_handle is 0", "/sys/fs/cgroup/rdma.max"}}},
	{"no huge pages", nil, func(m *machine) {
		m.Write("proc/meminfo", "HugePages_Free: 0")
		m.Write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]")
	}, []bad{{"hugepages", Hint, "none free", "vm.nr_hugepages"}}},
	{"governor", nil, func(m *machine) { m.Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave") }, []bad{{"governor", Hint, "powersave, on 1 CPUs", "cpupower"}}},
	{"IOMMU", nil, func(m *machine) { m.Write("sys/devices/pci0000:00/0000:01:00.0/iommu_group/type", "DMA-FQ") }, []bad{{"iommu", Hint, "DMA-FQ", "iommu=pt"}}},
	{"far CPUs", nil, func(m *machine) {
		m.Write("sys/devices/pci0000:00/0000:01:00.0/numa_node", "1")
		m.Write("sys/devices/pci0000:00/0000:01:00.0/local_cpulist", "16-31")
		m.Write("proc/self/status", "CapEff:\t0\nCpus_allowed_list:\t0")
	}, []bad{{"numa", Warning, "on node 1, and this process may run on other nodes only, distance 21", "numactl --cpunodebind=1"}}},
	{"port down", port(func(p *sim.Port) { p.State = verbs.PortDown }), nil, []bad{
		{"device", Error, "none of 1", ""}, {"port", Error, "DOWN", "ip link set eth0 up"}}},
	{"second port down", []testhost.NIC{{Name: "mlx5_0", Ports: []sim.Port{testhost.Port(1), {PortAttr: verbs.PortAttr{State: verbs.PortDown, LinkLayer: verbs.LinkEthernet}, GIDs: []sim.GID{}}}}}, nil,
		[]bad{{"port", Hint, "DOWN", "cable"}}},
	{"no subnet manager", port(func(p *sim.Port) { p.State, p.LinkLayer, p.GIDs = verbs.PortInit, verbs.LinkInfiniBand, []sim.GID{} }), nil, []bad{
		{"device", Error, "none of 1", ""}, {"port", Error, "INIT", "opensm"}}},
	{"no GID", port(func(p *sim.Port) { p.GIDs = []sim.GID{} }), nil, []bad{{"device", Error, "none of 1", ""}, {"gid", Error, "nothing for this network namespace", "ip addr add"}}},
	{"RoCE v1 only", port(func(p *sim.Port) { p.GIDs[0].Type, p.GIDs[1].Type = verbs.GIDRoCEv1, verbs.GIDRoCEv1 }), nil, []bad{{"gid", Warning, "no RoCE v2 GID", "RoCE mode"}}},
	{"link-local only", port(func(p *sim.Port) { p.GIDs = p.GIDs[:1] }), nil, []bad{{"gid", Warning, "link-local (fe80::1)", "ip addr add ADDRESS/24 dev eth0"}}},
	{"small MTU", port(func(p *sim.Port) { p.ActiveMTU = qp.MTU1024 }), func(m *machine) { m.Write("sys/class/net/eth0/mtu", "1500") }, []bad{{"mtu", Hint, "1024, and the port could 4096", "ip link set eth0 mtu 4200"}}},
	{"MTU mismatch", nil, func(m *machine) { m.Write("sys/class/net/eth0/mtu", "1500") }, []bad{{"mtu", Warning, "4096 bytes do not fit into eth0, whose MTU is 1500", "ip link set eth0 mtu 4192"}}},
	{"trust", nil, func(m *machine) { m.Write("sys/class/net/eth0/qos/trust", "pcp") }, []bad{{"qos", Hint, "pcp", "--trust dscp"}}},
	{"no ECN", nil, func(m *machine) { m.Write("sys/class/net/eth0/ecn/roce_np/enable/3", "0") }, []bad{{"qos", Hint, "ECN is off (roce_np)", "echo 1 > /sys/class/net/eth0/ecn/roce_np/enable/3"}}},
	{"lost packets", nil, func(m *machine) { m.Write("sys/class/infiniband/mlx5_0/ports/1/counters/out_of_sequence", "12") }, []bad{{"counters", Hint, "out_of_sequence 12 (lost packets)", "cable"}}},
	{"loop", nil, func(m *machine) {
		m.h.Loop = func(context.Context, verbs.Device) (Loop, error) {
			return Loop{}, errors.New("loop test: send: RETRY_EXC_ERR")
		}
	}, []bad{{"loop", Error, "RETRY_EXC_ERR", "report this"}}},
	{"another system", nil, func(m *machine) { m.h.OS = "darwin" }, []bad{{"os", Error, "darwin has no RDMA devices", "Linux"}}},
}

func TestBrokenMachines(t *testing.T) {
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			m := healthy(t, tt.nics...)
			if tt.harm != nil {
				tt.harm(m)
			}
			r := m.run()
			var got []Finding
			for _, f := range r.Findings {
				if f.Severity != OK {
					got = append(got, f)
				}
			}
			if len(got) != len(tt.want) {
				t.Fatalf("%d findings: %+v, want %+v", len(got), got, tt.want)
			}
			errs := 0
			for i, w := range tt.want {
				f := got[i]
				if f.Check != w.check || f.Severity != w.severity || !strings.Contains(f.Found, w.found) || !strings.Contains(f.Remedy, w.remedy) || f.Remedy == "" {
					t.Errorf("finding %+v, want %+v", f, w)
				}
				if w.severity == Error {
					errs++
				}
			}
			if (r.Err() != nil) != (errs > 0) {
				t.Errorf("error %v with %d errors", r.Err(), errs)
			}
		})
	}
}

// An exemption from the limit is seen too: without it the same machine has an error.
func TestCapabilityLiftsMemlock(t *testing.T) {
	m := healthy(t)
	m.h.Memlock = Limit{true, 64 << 10, 64 << 10}
	m.Write("proc/self/status", "CapEff:\t0000000000004000\nCpus_allowed_list:\t0-3")
	if r := m.run(); r.Err() != nil {
		t.Errorf("with CAP_IPC_LOCK: %+v", r.Findings)
	}
	m.Write("proc/self/status", "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-3")
	if r := m.run(); r.Err() == nil {
		t.Error("without it: no error")
	}
}

func TestNamedDevice(t *testing.T) {
	none := healthy(t, testhost.NIC{Name: "mlx5_0", Driver: "hfi1"})
	if r, _ := Run(context.Background(), &none.h, "mlx5_0", time.Unix(0, 0)); r.Summary[Error] != 1 {
		t.Errorf("a named device without a provider: %+v", r.Findings)
	}
	m := healthy(t, testhost.NIC{Name: "mlx5_0"}, testhost.NIC{Name: "mlx5_1", NoNode: true})
	m.Remove("sys/devices/pci0000:00/0000:02:00.0/numa_node")
	r, devs := Run(context.Background(), &m.h, "mlx5_0", time.Unix(0, 0))
	if r.Err() != nil || len(devs) != 1 || devs[0].Name != "mlx5_0" {
		t.Errorf("mlx5_0: %v, %+v", r.Err(), devs)
	}
	if r, _ := Run(context.Background(), &m.h, "mlx5_1", time.Unix(0, 0)); r.Err() == nil {
		t.Error("mlx5_1 has no node, and no error")
	}
	r, _ = Run(context.Background(), &m.h, "mlx5_9", time.Unix(0, 0))
	if i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Severity == Error }); i < 0 || r.Findings[i].Subject != "mlx5_9" {
		t.Errorf("mlx5_9: %+v", r.Findings)
	}
	if r, devs := Run(context.Background(), &Host{OS: "linux"}, "sim:", time.Unix(0, 0)); r.Err() != nil || r.Summary[OK] != 2 || len(devs) != 1 {
		t.Errorf("sim:: %+v", r.Findings)
	}
}

// Every check is described, and the document can be read back.
func TestDocumentIsDescribed(t *testing.T) {
	docs, err := os.ReadFile("../../../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	all := append([]string{"os", "permission", "provider", "open", "rxe", "tcp", "peer", "peer-version", "peer-device", "peer-mtu", "peer-gid"}, checks...)
	for _, c := range all {
		if !strings.Contains(string(docs), "| `"+c+"` |") {
			t.Errorf("check %q is not in docs/doctor.md", c)
		}
	}
	var b bytes.Buffer
	r := healthy(t).run()
	if err := json.NewEncoder(&b).Encode(r); err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(b.Bytes(), &again); err != nil || again.Schema != Schema || !slices.Equal(again.Findings, r.Findings) || again.Summary[OK] != r.Summary[OK] {
		t.Errorf("%+v, %v", again, err)
	}
	b.Reset()
	if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "19 ok, 0 hints, 0 warnings, 0 errors") {
		t.Errorf("%s, %v", &b, err)
	}
}
