//go:build linux

package uverbs

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// RDMA netlink (family "NLDEV"): messages of type client<<10 | command, with
// ordinary netlink attributes (linux/netlink.h, rdma/rdma_netlink.h).

const nlHeader = 16 // struct nlmsghdr

// nlDevice is what netlink tells of a device; a zero field, what it does not.
type nlDevice struct {
	name     string
	index    uint32
	ports    int
	nodeType int
	nodeGUID uint64
	driver   DriverID
	chardev
}

// chardev is a device node of the RDMA subsystem.
type chardev struct {
	node         string // "uverbs0"
	abi          int
	major, minor uint32
}

var errNetlink = errors.New("malformed netlink message")

// netlinkDevices asks for all devices, by name. It is empty when netlink does not
// answer: old kernels, or a system without RDMA.
func (s *System) netlinkDevices() map[string]nlDevice {
	devs := map[string]nlDevice{}
	ask, done := s.netlink()
	defer done()
	if ask == nil {
		return devs
	}
	msgs, err := ask(nlRequest(nlGet, unix.NLM_F_REQUEST|unix.NLM_F_DUMP))
	if err != nil {
		return devs
	}
	for _, m := range msgs {
		a, err := nlAttrs(m)
		if err != nil || len(a[nlAttrDevIndex]) != 4 || len(a[nlAttrDevName]) == 0 {
			continue
		}
		d := nlDevice{
			name: nlString(a[nlAttrDevName]), index: uint32(nlNumber(a[nlAttrDevIndex])), ports: nlPorts(a[nlAttrPortIndex]),
			nodeType: int(nlNumber(a[nlAttrNodeType])), nodeGUID: nlNumber(a[nlAttrNodeGUID]),
		}
		reply, err := askOne(ask, nlRequest(nlGetChardev, unix.NLM_F_REQUEST,
			nlAttr(nlAttrDevIndex, a[nlAttrDevIndex]), nlAttr(nlAttrChardevType, []byte("uverbs\x00"))))
		if err == nil {
			d.driver, d.chardev = DriverID(nlNumber(reply[nlAttrDriverID])), nlChardev(reply)
		}
		devs[d.name] = d
	}
	return devs
}

// askOne makes a request that has one message as answer, and gives its attributes.
func askOne(ask func([]byte) ([][]byte, error), request []byte) (map[uint16][]byte, error) {
	msgs, err := ask(request)
	if err != nil {
		return nil, err
	}
	if len(msgs) == 0 {
		return nil, errNetlink
	}
	return nlAttrs(msgs[0])
}

// nlChardev reads the attributes of a device node. The kernel packs the number as
// new_encode_dev (linux/kdev_t.h).
func nlChardev(a map[uint16][]byte) chardev {
	v := nlNumber(a[nlAttrChardev])
	return chardev{
		node: nlString(a[nlAttrChardevName]), abi: int(uint32(nlNumber(a[nlAttrChardevABI]))),
		major: uint32(v & 0xfff00 >> 8), minor: uint32(v&0xff | v>>12&0xfff00),
	}
}

// nlPorts reads a number of ports; none, if it is more than a port's number can be,
// which the requests have 8 bits for (ib_uverbs_qp_attr.port_num).
func nlPorts(b []byte) int {
	if n := nlNumber(b); n <= math.MaxUint8 {
		return int(n)
	}
	return 0
}

func nlString(b []byte) string { return strings.TrimRight(string(b), "\x00") }

// nlNumber reads an attribute of 1, 2, 4 or 8 bytes; any other is 0.
func nlNumber(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.NativeEndian.Uint16(b))
	case 4:
		return uint64(binary.NativeEndian.Uint32(b))
	case 8:
		return binary.NativeEndian.Uint64(b)
	}
	return 0
}

func nlRequest(cmd, flags uint16, attrs ...[]byte) []byte {
	b := make([]byte, nlHeader)
	for _, a := range attrs {
		b = append(b, a...)
	}
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], nlClientNLDev<<10|cmd)
	binary.NativeEndian.PutUint16(b[6:], flags)
	binary.NativeEndian.PutUint32(b[8:], 1) // sequence
	return b
}

func nlAttr(typ uint16, v []byte) []byte {
	b := make([]byte, nlAlign(4+len(v)))
	binary.NativeEndian.PutUint16(b, uint16(4+len(v)))
	binary.NativeEndian.PutUint16(b[2:], typ)
	copy(b[4:], v)
	return b
}

func nlAlign(n int) int { return (n + 3) &^ 3 }

// nlAttrs takes a message's attributes apart, by type.
func nlAttrs(msg []byte) (map[uint16][]byte, error) {
	if len(msg) < nlHeader {
		return nil, errNetlink
	}
	attrs := map[uint16][]byte{}
	for b := msg[nlHeader:]; len(b) > 0; {
		if len(b) < 4 {
			return nil, errNetlink
		}
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			return nil, errNetlink
		}
		attrs[binary.NativeEndian.Uint16(b[2:])&0x3fff] = b[4:n] // without the nested and byte-order bits
		b = b[min(nlAlign(n), len(b)):]
	}
	return attrs, nil
}

// nlSplit takes one datagram apart. done is set by the end of a dump or by an
// error message, whose errno is returned.
func nlSplit(b []byte) (msgs [][]byte, done bool, err error) {
	for len(b) > 0 {
		if len(b) < nlHeader {
			return msgs, true, errNetlink
		}
		n := int(binary.NativeEndian.Uint32(b))
		if n < nlHeader || n > len(b) {
			return msgs, true, errNetlink
		}
		switch binary.NativeEndian.Uint16(b[4:]) {
		case unix.NLMSG_DONE:
			return msgs, true, nil
		case unix.NLMSG_ERROR:
			if n < nlHeader+4 {
				return msgs, true, errNetlink
			}
			if e := int32(binary.NativeEndian.Uint32(b[nlHeader:])); e != 0 {
				return msgs, true, syscall.Errno(-e)
			}
			return msgs, true, nil
		}
		msgs = append(msgs, b[:n:n])
		b = b[min(nlAlign(n), len(b)):]
	}
	return msgs, false, nil
}

// netlinkConn is an open RDMA netlink socket.
type netlinkConn struct{ fd int }

func dialNetlink() (*netlinkConn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, netlinkRDMA)
	if err != nil {
		return nil, err
	}
	// The kernel answers at once; the limit is against a kernel that does not.
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &netlinkConn{fd}, nil
}

func (c *netlinkConn) close() { unix.Close(c.fd) }

func (c *netlinkConn) ask(req []byte) ([][]byte, error) {
	if err := unix.Sendto(c.fd, req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	dump := binary.NativeEndian.Uint16(req[6:])&unix.NLM_F_DUMP == unix.NLM_F_DUMP
	return nlAnswer(dump, func(b []byte) (int, error) {
		n, _, err := unix.Recvfrom(c.fd, b, 0)
		return n, err
	})
}

// maxDatagrams bounds an answer. The kernel fills datagrams, so that one holds dozens of
// devices; but a dump that changes while it is read must not go on for ever.
const maxDatagrams = 1024

// nlAnswer reads one message, or a whole dump.
func nlAnswer(dump bool, receive func(b []byte) (int, error)) (all [][]byte, err error) {
	for range maxDatagrams {
		buf := make([]byte, 32<<10)
		n, err := receive(buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return all, err
		}
		msgs, done, err := nlSplit(buf[:n])
		all = append(all, msgs...)
		if done || err != nil || !dump {
			return all, err
		}
	}
	return all, errNetlink
}
