package channel_test

import (
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testdev"
)

// TestDeviceLinkDown (case C17): the link under the device goes down and comes back
// while calls go on: they move to TCP and return.
func TestDeviceLinkDown(t *testing.T) {
	name := testdev.Name(t)
	link := testdev.Interface(t, name)
	server, client := channel.NewDevice(openNamed(name), be.Config{}), channel.NewDevice(openNamed(name), be.Config{})
	for _, d := range []*channel.Device{server, client} {
		t.Cleanup(func() { eventually(t, "close the device", func() bool { return d.Close() == nil }) })
	}
	v := startServer(t, "a", nil)
	rdma := v.listen(server, "127.0.0.1:0")
	ch := newChannel(t, channel.Config{RDMA: client, Resolver: channel.Static(channel.Endpoint{Name: "a", RDMA: rdma, TCP: v.tcp})})
	l := startLoad(t, ch, 4)
	for round := range uint64(2) {
		eventually(t, "on RDMA", func() bool { return stats(ch, "a").Path == core.RDMA })
		l.more(t, 50)
		if err := netlink.LinkSetDown(link); err != nil {
			t.Fatal(err)
		}
		eventually(t, "on TCP", func() bool { return stats(ch, "a").Path == core.TCP })
		l.more(t, 50)
		if err := netlink.LinkSetUp(link); err != nil {
			t.Fatal(err)
		}
		eventually(t, "back on RDMA", func() bool { return stats(ch, "a").Returns == round+1 })
		t.Logf("fallbacks %v, failures %v", stats(ch, "a").Fallbacks, stats(ch, "a").Failures)
	}
	l.end()
	if st := ch.Stats(); st.Failed != 0 {
		t.Errorf("%+v", st.CallStats)
	}
}
