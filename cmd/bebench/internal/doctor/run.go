package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// Run makes all checks, and gives the devices that it found. With a name only that
// device is looked at; it may be a simulated one.
func Run(ctx context.Context, h *Host, name string, now time.Time) (*Report, []provider.Candidate) {
	r := NewReport(now)
	if name != "" && !ofKernel(name) {
		return r, r.simulated(ctx, h, name)
	}
	if h.OS != "linux" {
		r.on("os", "").bad(Error, h.OS+" has no RDMA devices that this program can use", "run it on Linux, or use the simulator with -d sim:")
		return r, nil
	}
	devs, err := provider.RankOf(h.Verbs) // first: the kernel loads modules when it is asked
	r.kernel(h)
	r.binary(h)
	r.modules(h)
	r.netns(h)
	r.rdmaCM(h)
	r.memlock(h)
	r.cgroup(h)
	r.hugePages(h)
	r.governor(h)
	devs = r.devices(h, devs, err, name)
	for i := range devs {
		r.device(h, &devs[i], name != "")
	}
	for i := range devs {
		r.loop(ctx, h, &devs[i])
	}
	return r, devs
}

// loopLimit bounds the test of one device: an emulated one takes a second.
const loopLimit = 20 * time.Second

// loop tests a device that can be used.
func (r *Report) loop(ctx context.Context, h *Host, c *provider.Candidate) {
	if c.Device == nil || c.Rank == 0 && c.Kernel.Name != "" {
		return
	}
	test := h.Loop
	if test == nil {
		test = LoopTest
	}
	ctx, cancel := context.WithTimeout(ctx, loopLimit)
	defer cancel()
	a := r.on("loop", c.Name)
	l, err := test(ctx, c.Device)
	if err != nil {
		a.bad(Error, err.Error(), "mend what is said above first; if all of that is ok, report this")
		return
	}
	a.ok("two queue pairs sent %d bytes to each other: port %d, GID %s, MTU %d", l.Bytes, l.Port, l.GID, l.MTUBytes)
}

func (r *Report) simulated(ctx context.Context, h *Host, name string) []provider.Candidate {
	dev, err := provider.Open(name)
	if err != nil {
		r.on("device", name).bad(Error, err.Error(), "use sim:")
		return nil
	}
	c := provider.Judge(dev)
	if c.Err != nil {
		r.on("device", name).bad(Error, c.Err.Error(), "use sim:")
		return nil
	}
	r.on("device", name).ok("simulated NIC of this process: it needs no set-up")
	r.loop(ctx, h, &c)
	return []provider.Candidate{c}
}

func ofKernel(name string) bool { return !strings.HasPrefix(name, "sim:") }

// details of a device, from sysfs.
func details(h *Host, c *provider.Candidate) uverbs.Details { return h.Verbs.Details(c.Kernel) }

func isEthernet(p *provider.PortCandidate) bool { return p.Attr.LinkLayer == verbs.LinkEthernet }
