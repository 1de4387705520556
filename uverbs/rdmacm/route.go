package rdmacm

import (
	"fmt"
	"net/netip"

	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// Route is the way of a connection: addresses, and the local device that it goes
// through.
type Route struct {
	Local  netip.AddrPort
	Remote netip.AddrPort
	Device uverbs.Device // the local device; to open it, take its Name
	Port   uint8         // of the device, from 1
	SGID   verbs.GID     // ours
	DGID   verbs.GID     // the peer's
}

// rawRoute is the answer to QUERY_ROUTE.
type rawRoute struct {
	local, remote netip.AddrPort
	guid          uint64
	index         uint32 // the kernel's number of the device
	port          uint8  // 0: no device
	sgid, dgid    verbs.GID
}

func decodeRoute(b []byte) (rawRoute, error) {
	if len(b) < routeSize {
		return rawRoute{}, fmt.Errorf("route of %d bytes, %d needed", len(b), routeSize)
	}
	path := routePath.In(b)
	return rawRoute{
		local: getAddr(routeSrc.In(b)[:sockaddrSize]), remote: getAddr(routeDst.In(b)[:sockaddrSize]),
		guid: routeNodeGUID.Get(b), index: routeIbdevIndex.Get(b), port: routePort.Get(b),
		sgid: verbs.GID(pathSGID.In(path)[:16]), dgid: verbs.GID(pathDGID.In(path)[:16]),
	}, nil
}

// device finds the route's device by its GUID. Software devices on one interface
// share a GUID: the kernel's number tells them apart.
func (r *rawRoute) device(s *uverbs.System) (uverbs.Device, error) {
	devs, err := s.Devices()
	if err != nil {
		return uverbs.Device{}, err
	}
	var found []uverbs.Device
	for _, d := range devs {
		if d.NodeGUID == r.guid {
			found = append(found, d)
		}
	}
	for _, d := range found {
		if len(found) == 1 || d.Index == r.index {
			return d, d.Err
		}
	}
	return uverbs.Device{}, fmt.Errorf("%w: none with GUID %016x and index %d", verbs.ErrNotFound, r.guid, r.index)
}
