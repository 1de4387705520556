package doctor

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/byteexpress/byteexpress/provider"
)

// iommu looks whether each of the device's accesses is translated.
func (r *Report) iommu(h *Host, c *provider.Candidate) {
	typ := h.read("sys/class/infiniband", c.Name, "device/iommu_group/type")
	switch {
	case typ == "":
	case strings.HasPrefix(typ, "DMA"):
		r.on("iommu", c.Name).bad(Hint, "the IOMMU translates each access (type "+typ+")", "boot with iommu=pt, if no virtual machine is given devices of this host")
	default:
		r.on("iommu", c.Name).ok("type %s: accesses are not translated", typ)
	}
}

// numa looks whether this process may run next to the device.
func (r *Report) numa(h *Host, c *provider.Candidate) {
	d := details(h, c)
	if d.NUMANode < 0 {
		return
	}
	a := r.on("numa", c.Name)
	near, mine := cpus(d.LocalCPUs), cpus(h.field("proc/self/status", "Cpus_allowed_list"))
	if len(near) == 0 || len(mine) == 0 {
		a.ok("on node %d", d.NUMANode)
		return
	}
	node := -1
	for cpu := range mine {
		if near[cpu] {
			a.ok("on node %d, where this process may run", d.NUMANode)
			return
		}
		if node < 0 {
			node = h.nodeOf(cpu)
		}
	}
	far := ""
	if dist := strings.Fields(h.read(fmt.Sprintf("sys/devices/system/node/node%d/distance", d.NUMANode))); node >= 0 && node < len(dist) {
		far = fmt.Sprintf(", distance %s", dist[node])
	}
	a.bad(Warning, fmt.Sprintf("the device is on node %d, and this process may run on other nodes only%s", d.NUMANode, far),
		fmt.Sprintf("numactl --cpunodebind=%d --membind=%d", d.NUMANode, d.NUMANode))
}

// nodeOf is the NUMA node of a CPU, -1 if that is not known.
func (h *Host) nodeOf(cpu int) int {
	for _, name := range h.list(fmt.Sprintf("sys/devices/system/cpu/cpu%d", cpu)) {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "node")); err == nil && strings.HasPrefix(name, "node") {
			return n
		}
	}
	return -1
}

// maxCPUs bounds what a list of CPUs can make us take.
const maxCPUs = 1 << 16

// cpus reads a list as "0-3,8".
func cpus(list string) map[int]bool {
	out := map[int]bool{}
	for _, part := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		for cpu := max(a, 0); cpu <= min(b, maxCPUs); cpu++ {
			out[cpu] = true
		}
	}
	return out
}

// qos says what can be read of how the NIC marks and pauses traffic; drivers from
// outside the kernel have it in sysfs.
func (r *Report) qos(h *Host, c *provider.Candidate, p *provider.PortCandidate, subject, netdev string) {
	a := r.on("qos", subject)
	ports := fmt.Sprintf("%d", p.Port)
	tclass := h.read("sys/class/infiniband", c.Name, "tc", ports, "traffic_class")
	trust := h.read("sys/class/net", netdev, "qos/trust")
	pfc := h.read("sys/class/net", netdev, "qos/pfc")
	tos, hasTOS := h.number("sys/kernel/config/rdma_cm", c.Name, "ports", ports, "default_roce_tos")
	var has, ecnOff []string
	for _, role := range []string{"roce_np", "roce_rp"} { // notification and reaction point
		dir := path.Join("sys/class/net", netdev, "ecn", role, "enable")
		on := 0
		for _, prio := range h.list(dir) {
			if h.read(dir, prio) == "1" {
				on++
			}
		}
		if h.exists(dir) {
			has = append(has, fmt.Sprintf("%s on for %d priorities", role, on))
			if on == 0 {
				ecnOff = append(ecnOff, role)
			}
		}
	}
	for _, v := range []struct{ name, is string }{{"trust", trust}, {"PFC", pfc}, {"traffic class", tclass}} {
		if v.is != "" {
			has = append(has, v.name+" "+strings.Join(strings.Fields(v.is), " "))
		}
	}
	if hasTOS {
		has = append(has, fmt.Sprintf("rdma_cm's type of service %d", tos))
	}
	switch {
	case len(has) == 0: // nothing can be read
	case trust == "pcp":
		a.bad(Hint, netdev+" trusts VLAN priorities (pcp): --tclass sets the DSCP of RoCE v2 packets, which it does not look at", "mlnx_qos -i "+netdev+" --trust dscp")
	case len(ecnOff) > 0:
		a.bad(Hint, fmt.Sprintf("ECN is off (%s): congestion is answered by pauses or loss only", strings.Join(ecnOff, ", ")), fmt.Sprintf("echo 1 > /sys/class/net/%s/ecn/%s/enable/3", netdev, ecnOff[0]))
	default:
		a.ok("%s", strings.Join(has, ", "))
	}
}

// troubles are counters that are 0 where all is well, by the kernel's names, and what
// they tell of.
var troubles = []struct{ counter, means string }{
	{"symbol_error", "a bad cable or plug"},
	{"link_downed", "the link was down"},
	{"port_rcv_errors", "damaged packets"},
	{"port_xmit_discards", "packets dropped for congestion, or the link was down"},
	{"out_of_sequence", "lost packets"},
	{"packet_seq_err", "lost packets"},
	{"local_ack_timeout_err", "lost packets, or a dead peer"},
	{"rnr_nak_retry_err", "a receiver that had no receive posted"},
	{"rx_icrc_encapsulated", "damaged packets"},
}

func (r *Report) counters(h *Host, c *provider.Candidate, p *provider.PortCandidate, subject string) {
	d := details(h, c)
	if p.Port > len(d.Ports) || len(d.Ports[p.Port-1].Counters) == 0 {
		return
	}
	have := d.Ports[p.Port-1].Counters
	var found []string
	for _, t := range troubles {
		if n := have[t.counter]; n > 0 {
			found = append(found, fmt.Sprintf("%s %d (%s)", t.counter, n, t.means))
		}
	}
	if len(found) > 0 {
		r.on("counters", subject).bad(Hint, strings.Join(found, ", ")+"; since the driver was loaded", "if they still grow, look at cable, switch and flow control: bebench devices "+c.Name)
		return
	}
	r.on("counters", subject).ok("no errors counted")
}
