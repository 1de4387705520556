//go:build linux

package main

import (
	"net"
	"time"

	"github.com/pkg/errors"
	"github.com/vishvananda/netlink"

	"github.com/byteexpress/byteexpress/internal/testdev/port"
)

// The network interface below the rxe device. An MTU of 4200 leaves room for RoCE's
// headers above the largest RDMA MTU, 4096; a MAC address, an IPv4 and an IPv6
// address make the device's GIDs 0 to 2.
const (
	netdev    = "dummy0" // the dummy module makes it
	address   = "10.9.0.1/24"
	address6  = "fd09::1/64"
	mtu       = 4200
	readyWait = 20 * time.Second
)

var mac = net.HardwareAddr{0x02, 0x00, 0x0a, 0x09, 0x00, 0x01}

// addDevice brings the loopback and the dummy interface up, adds the rxe device to
// the latter and waits until it can be used. It gives its GID for IPv4.
func addDevice(name string) (gid port.GID, err error) {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return gid, errors.Wrap(err, "interface lo")
	}
	if err := dummyUp(); err != nil {
		return gid, errors.Wrapf(err, "interface %s", netdev)
	}
	if err := netlink.RdmaLinkAdd(name, "rxe", netdev); err != nil {
		return gid, errors.Wrapf(err, "rxe device %s on %s", name, netdev)
	}
	for end := time.Now().Add(readyWait); ; time.Sleep(20 * time.Millisecond) {
		if gid, err = port.IPv4GID(name); err == nil || time.Now().After(end) {
			return gid, err
		}
	}
}

func dummyUp() error {
	link, err := netlink.LinkByName(netdev)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetHardwareAddr(link, mac); err != nil {
		return err
	}
	if err := netlink.LinkSetMTU(link, mtu); err != nil {
		return err
	}
	for _, text := range []string{address, address6} {
		addr, err := netlink.ParseAddr(text)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(link, addr); err != nil {
			return errors.Wrap(err, text)
		}
	}
	return netlink.LinkSetUp(link)
}
