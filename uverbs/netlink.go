//go:build linux

package uverbs

import (
	"encoding/binary"
	"errors"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// RDMA netlink (family "NLDEV"): messages of type client<<10 | command, with
// ordinary netlink attributes (linux/netlink.h, rdma/rdma_netlink.h).

const nlHeader = 16 // struct nlmsghdr

// nlDevice is what netlink tells of a device.
type nlDevice struct {
	driver DriverID
	index  uint32
}

var errNetlink = errors.New("malformed netlink message")

// driverIDs asks which driver and which number of the kernel's each device has. It is
// empty when netlink does not answer: old kernels, or a system without RDMA.
func (s *System) driverIDs() map[string]nlDevice {
	ids := map[string]nlDevice{}
	ask, done := s.netlink()
	defer done()
	if ask == nil {
		return ids
	}
	msgs, err := ask(nlRequest(nlGet, unix.NLM_F_REQUEST|unix.NLM_F_DUMP))
	if err != nil {
		return ids
	}
	for _, m := range msgs {
		dev, err := nlAttrs(m)
		if err != nil || len(dev[nlAttrDevIndex]) != 4 || len(dev[nlAttrDevName]) == 0 {
			continue
		}
		reply, err := ask(nlRequest(nlGetChardev, unix.NLM_F_REQUEST,
			nlAttr(nlAttrDevIndex, dev[nlAttrDevIndex]), nlAttr(nlAttrChardevType, []byte("uverbs\x00"))))
		if err != nil || len(reply) == 0 {
			continue
		}
		if a, err := nlAttrs(reply[0]); err == nil && len(a[nlAttrDriverID]) == 4 {
			ids[strings.TrimRight(string(dev[nlAttrDevName]), "\x00")] = nlDevice{
				driver: DriverID(binary.NativeEndian.Uint32(a[nlAttrDriverID])), index: binary.NativeEndian.Uint32(dev[nlAttrDevIndex]),
			}
		}
	}
	return ids
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
	var all [][]byte
	for {
		buf := make([]byte, 32<<10)
		n, _, err := unix.Recvfrom(c.fd, buf, 0)
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
}
