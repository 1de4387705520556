package doctor

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// What a run takes of locked memory, in bytes. A node of ByteExpress registers blocks
// of 4 MiB, and completion queues of hardware count too; a bandwidth test at the
// default depth registers up to 64 MiB.
const (
	leastLocked = 4 << 20
	wantLocked  = 64 << 20
)

// capIPCLock is the bit of CAP_IPC_LOCK (linux/capability.h), whose holder has no
// limit.
const capIPCLock = 14

func (r *Report) memlock(h *Host) {
	l := h.Memlock
	if !l.Known {
		return
	}
	a := r.on("memlock", "")
	caps, _ := strconv.ParseUint(h.field("proc/self/status", "CapEff"), 16, 64)
	exempt, own := caps>>capIPCLock&1 != 0, h.ownUsers()
	if exempt && !own {
		a.ok("no limit: the process has CAP_IPC_LOCK (RLIMIT_MEMLOCK is %s)", size(l.Soft))
		return
	}
	note := ""
	if exempt {
		note = "; CAP_IPC_LOCK does not count in a user namespace"
	}
	severity := Warning
	if l.Soft < leastLocked {
		severity = Error
	}
	switch {
	case l.Soft >= wantLocked:
		a.ok("RLIMIT_MEMLOCK is %s", size(l.Soft))
	case l.Hard >= wantLocked:
		a.bad(severity, fmt.Sprintf("RLIMIT_MEMLOCK is %s, up to %s are used%s", size(l.Soft), size(wantLocked), note),
			fmt.Sprintf("ulimit -l %s: the hard limit, %s, allows it", kib(l.Hard), size(l.Hard)))
	default:
		remedy := "raise it in /etc/security/limits.conf (memlock), a service's LimitMEMLOCK=infinity, or grant CAP_IPC_LOCK"
		if c := h.container(); c != "" {
			remedy = "start the container with --ulimit memlock=-1, or --cap-add IPC_LOCK"
		}
		a.bad(severity, fmt.Sprintf("RLIMIT_MEMLOCK is %s, and at most %s, up to %s are used%s", size(l.Soft), size(l.Hard), size(wantLocked), note), remedy)
	}
}

// ownUsers reports a user namespace that is not the first: its map is not the
// identity of all ids.
func (h *Host) ownUsers() bool {
	m := strings.Fields(h.read("proc/self/uid_map"))
	return len(m) > 0 && !(len(m) == 3 && m[0] == "0" && m[1] == "0" && m[2] == "4294967295")
}

func size(n uint64) string {
	switch {
	case n == unlimited:
		return "unlimited"
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// kib is a limit as ulimit takes it.
func kib(n uint64) string {
	if n == unlimited {
		return "unlimited"
	}
	return strconv.FormatUint(n>>10, 10)
}

// Objects of a device that a cgroup should allow: a run of many queue pairs has some
// hundred.
const wantObjects = 1000

// cgroup looks at the limits of RDMA objects of the process's cgroup and those above
// it (rdma.max: "DEVICE hca_handle=N hca_object=N").
func (r *Report) cgroup(h *Host) {
	a := r.on("cgroup", "")
	dir, ok := h.rdmaCgroup()
	if !ok {
		return
	}
	limited := false
	for at := dir; ; at = path.Dir(at) {
		for line := range strings.Lines(h.read(at, "rdma.max")) {
			f := strings.Fields(line)
			if len(f) == 0 {
				continue
			}
			for _, kv := range f[1:] {
				what, value, _ := strings.Cut(kv, "=")
				n, err := strconv.Atoi(value)
				if err != nil || what == "hca_object" && n >= wantObjects || what == "hca_handle" && n > 1 {
					continue // max, or enough
				}
				limited = true
				s := Warning
				if n == 0 {
					s = Error
				}
				a.bad(s, fmt.Sprintf("%s: %s is %d in /%s/rdma.max", f[0], what, n, at), fmt.Sprintf("echo '%s %s=max' > /%s/rdma.max", f[0], what, at))
			}
		}
		if at == "sys/fs/cgroup" || at == "." || at == "/" {
			break
		}
	}
	if !limited {
		a.ok("no limit of RDMA objects")
	}
}

// rdmaCgroup finds the directory of the process's cgroup that has the rdma controller.
func (h *Host) rdmaCgroup() (string, bool) {
	for line := range strings.Lines(h.read("proc/self/cgroup")) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		root := ""
		switch {
		case id == "0" && controllers == "":
			root = "sys/fs/cgroup"
		case strings.Contains(","+controllers+",", ",rdma,"):
			root = "sys/fs/cgroup/rdma"
		default:
			continue
		}
		if dir := path.Join(root, path.Clean("/"+group)); h.exists(dir) {
			return dir, true
		}
		if h.exists(root) { // a container sees its own group as the root
			return root, true
		}
	}
	return "", false
}

func (r *Report) hugePages(h *Host) {
	a := r.on("hugepages", "")
	free, err := strconv.Atoi(h.field("proc/meminfo", "HugePages_Free"))
	thp := h.read("sys/kernel/mm/transparent_hugepage/enabled")
	switch {
	case err == nil && free > 0:
		a.ok("%d free, of %s", free, h.field("proc/meminfo", "Hugepagesize"))
	case strings.Contains(thp, "[always]"), strings.Contains(thp, "[madvise]"):
		a.ok("transparent huge pages are on")
	case err != nil && thp == "":
		a.ok("this kernel has none")
	default:
		a.bad(Hint, "none free, and transparent ones are off: registering much memory takes longer", "sysctl vm.nr_hugepages=512, or echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
	}
}
