//go:build linux

package rxe

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/byteexpress/byteexpress/internal/testdev"
)

// resources gives what `rdma resource show` and hw_counters in sysfs tell of the
// device under test.
func resources(t testing.TB) map[string]uint64 {
	t.Helper()
	name := testdev.Name(t)
	all, err := netlink.RdmaResourceList()
	must(t, err)
	counts := map[string]uint64{}
	for _, r := range all {
		if r.Name == name {
			for what, n := range r.RdmaResourceSummaryEntries {
				counts[what] = n
			}
		}
	}
	if counts["qp"] == 0 {
		t.Errorf("the kernel tells of no queue pair of %s: %v", name, all)
	}
	files, err := filepath.Glob("/sys/class/infiniband/" + name + "/ports/1/hw_counters/*")
	must(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		must(t, err)
		base := filepath.Base(f)
		if base == "lifespan" { // of the counters, in milliseconds
			continue
		}
		if counts[base], err = strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	return counts
}
