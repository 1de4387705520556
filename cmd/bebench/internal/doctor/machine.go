package doctor

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// kernels says from which release on the kernel has what is used.
var kernels = []struct {
	major, minor int
	severity     Severity // without it
	without      string
}{
	{5, 0, Error, "it has no verbs by ioctl"},
	{5, 6, Hint, "memory regions cannot have relaxed ordering"},
	{5, 10, Warning, "GID tables are read from sysfs, which older kernels do not keep apart by network namespace"},
	{5, 12, Hint, "memory of GPUs (dmabuf) cannot be registered"},
}

func (r *Report) kernel(h *Host) {
	a := r.on("kernel", "")
	var major, minor int
	if n, _ := fmt.Sscanf(h.Kernel, "%d.%d", &major, &minor); n != 2 {
		a.bad(Hint, fmt.Sprintf("release %q is not understood", h.Kernel), "nothing, if all else is ok")
		return
	}
	for _, k := range kernels {
		if major < k.major || major == k.major && minor < k.minor {
			a.bad(k.severity, h.Kernel+": "+k.without, fmt.Sprintf("use kernel %d.%d or later", k.major, k.minor))
			return
		}
	}
	a.ok("%s has all that is used", h.Kernel)
}

// binary looks whether this program is one static file, as it is meant to be: one that
// was built with cgo needs the C library of the host that it is copied to.
func (r *Report) binary(h *Host) {
	if h.Program == nil {
		return
	}
	a := r.on("binary", "")
	at, c, err := h.Program()
	if err != nil {
		a.bad(Hint, "cannot be read: "+err.Error(), "mount /proc")
		return
	}
	defer c.Close()
	f, err := elf.NewFile(at)
	if err != nil {
		a.bad(Hint, "is no ELF file: "+err.Error(), "build it with CGO_ENABLED=0")
		return
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			a.bad(Hint, "is linked with the C library, which another host or an empty container may lack", "build it with CGO_ENABLED=0")
			return
		}
	}
	a.ok("one static file: no C library, no verbs library, no provider plug-ins")
}

// supportedABI is the version of the verbs ABI (IB_USER_VERBS_ABI_VERSION).
const supportedABI = "6"

func (r *Report) modules(h *Host) {
	a := r.on("modules", "")
	const load = "modprobe ib_uverbs; for software RDMA also modprobe rdma_rxe"
	switch abi := h.read("sys/class/infiniband_verbs/abi_version"); {
	case h.denied("sys/class"):
		a.bad(Error, "/sys cannot be read", "mount sysfs where this process can read it")
	case !h.exists("sys/class/infiniband"):
		a.bad(Error, "the kernel has no RDMA subsystem loaded (no /sys/class/infiniband)", load)
	case !h.exists("sys/class/infiniband_verbs"):
		a.bad(Error, "ib_uverbs is not loaded (no /sys/class/infiniband_verbs): programs cannot use the devices", load)
	case abi != "" && abi != supportedABI:
		a.bad(Error, fmt.Sprintf("the kernel has verbs ABI version %s, this program supports %s", abi, supportedABI), "use a program of this kernel's time, or another kernel")
	default:
		a.ok("ib_uverbs is loaded, ABI version %s", supportedABI)
	}
}

func (r *Report) netns(h *Host) {
	a := r.on("netns", "")
	switch mode := h.Verbs.NetNSMode(); mode {
	case "shared":
		a.ok("devices are shared by all network namespaces")
	case "exclusive":
		a.ok("each device belongs to one network namespace (`rdma system`): one of another is not listed here")
	}
}

// rdmaCM looks for the connection manager, which only -R and programs that connect by
// it need.
func (r *Report) rdmaCM(h *Host) {
	a := r.on("rdma_cm", "")
	n, err := h.Verbs.CMNode()
	if err != nil {
		_, remedy := split(err, "modprobe rdma_ucm")
		found := "no connection manager: connections by rdma_cm (-R) do not work, those by TCP do"
		if errors.Is(err, fs.ErrNotExist) && n.Major != 0 {
			found = n.Path + " is missing here: connections by rdma_cm (-R) do not work, those by TCP do"
		}
		a.bad(Hint, found, remedy)
		return
	}
	a.ok("%s, ABI version %d", n.Path, n.ABI)
}

func (r *Report) governor(h *Host) {
	a := r.on("governor", "")
	slow := map[string]int{}
	scaled := 0
	for _, cpu := range h.list("sys/devices/system/cpu") {
		g := h.read("sys/devices/system/cpu", cpu, "cpufreq/scaling_governor")
		if g == "" || !strings.HasPrefix(cpu, "cpu") {
			continue
		}
		scaled++
		if g != "performance" {
			slow[g]++
		}
	}
	switch {
	case scaled == 0:
		a.ok("the CPUs' frequency is not changed by this kernel")
	case len(slow) == 0:
		a.ok("performance, on %d CPUs", scaled)
	default:
		for _, g := range slices.Sorted(maps.Keys(slow)) {
			a.bad(Hint, fmt.Sprintf("%s, on %d CPUs: latency depends on how fast they wake", g, slow[g]), "cpupower frequency-set -g performance")
		}
	}
}
