package ps_test

import (
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/byteexpress/byteexpress/internal/testdev"
)

// TestDeviceReplicaProcesses is TestReplicaProcesses over RDMA on a real device, where
// the link below it, which all replicas share, goes down as well.
func TestDeviceReplicaProcesses(t *testing.T) {
	name := testdev.Name(t)
	link := testdev.Interface(t, name)
	set := func(to func(netlink.Link) error) func(*replicaProcess) {
		return func(*replicaProcess) {
			if err := to(link); err != nil {
				t.Fatal(err)
			}
		}
	}
	testReplicaProcesses(t, name, append(replicaFaults, replicaFault{"link down", set(netlink.LinkSetDown), set(netlink.LinkSetUp)}))
}
