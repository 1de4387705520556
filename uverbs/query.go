//go:build linux

package uverbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

// isMissing reports that the kernel has no such method.
func isMissing(err error) bool { return errors.Is(err, syscall.EPROTONOSUPPORT) }

// QueryDevice asks for the device's limits.
func (c *Context) QueryDevice() (verbs.DeviceAttr, error) {
	r, err := c.begin(mQueryDevice, queryDeviceRespSize)
	if err != nil {
		return verbs.DeviceAttr{}, err
	}
	defer r.release()
	r.in(attrCoreIn, queryDeviceSize)
	out := r.out(attrCoreOut, queryDeviceRespSize)
	if errno := r.do(); errno != 0 {
		return verbs.DeviceAttr{}, c.fail(r.m, "", errno)
	}
	b := queryDeviceRespBase.In(out)
	v := deviceFwVer.Get(b)
	return verbs.DeviceAttr{
		FirmwareVersion: fmt.Sprintf("%d.%d.%d", v>>32, v>>16&0xffff, v&0xffff),
		VendorID:        deviceVendorID.Get(b), VendorPartID: deviceVendorPartID.Get(b), HWVersion: deviceHWVer.Get(b),
		MaxQP: int(deviceMaxQP.Get(b)), MaxQPWR: int(deviceMaxQPWR.Get(b)), MaxSGE: int(deviceMaxSGE.Get(b)),
		MaxCQ: int(deviceMaxCQ.Get(b)), MaxCQE: int(deviceMaxCQE.Get(b)), MaxMR: int(deviceMaxMR.Get(b)), MaxMRSize: deviceMaxMRSize.Get(b),
		MaxPD: int(deviceMaxPD.Get(b)), MaxReads: int(deviceMaxQPInitRdAtom.Get(b)), MaxDestReads: int(deviceMaxQPRdAtom.Get(b)),
		Atomics: deviceAtomicCap.Get(b) != 0, CompVectors: c.vectors, PageSizes: devicePageSizeCap.Get(b),
	}, nil
}

// QueryPort asks for a port's state; ports count from 1.
func (c *Context) QueryPort(port int) (verbs.PortAttr, error) {
	r, err := c.begin(mQueryPort, portRespSize)
	if err != nil {
		return verbs.PortAttr{}, err
	}
	defer r.release()
	r.constant(attrPortNum, uint64(port))
	b := r.out(attrPortResp, portRespSize)
	if errno := r.do(); errno != 0 {
		return verbs.PortAttr{}, c.fail(r.m, fmt.Sprintf("%d of %d", port, c.dev.Ports), errno)
	}
	speed := uint32(portActiveSpeed.Get(b))
	if ex := u32(portRespReserved.In(b)[speedExInReserved:]); ex != 0 {
		speed = ex
	}
	width := portWidth(portActiveWidth.Get(b))
	return verbs.PortAttr{
		State: verbs.PortState(portState.Get(b)), LinkLayer: verbs.LinkLayer(portLinkLayer.Get(b)),
		MaxMTU: qp.MTU(portMaxMTU.Get(b)), ActiveMTU: qp.MTU(portActiveMTU.Get(b)), LID: portLID.Get(b),
		MaxMessage: portMaxMsgSz.Get(b), GIDs: int(portGIDTblLen.Get(b)), PKeys: int(portPKeyTblLen.Get(b)),
		Width: width, SpeedGbps: float64(width) * laneGbps(speed),
	}, nil
}

// portWidth decodes enum ib_port_width.
func portWidth(v uint8) int {
	switch v {
	case 1:
		return 1
	case 2:
		return 4
	case 4:
		return 8
	case 8:
		return 12
	case 16:
		return 2
	}
	return 0
}

// speedExInReserved is where in the reserved bytes of Linux 6.1's answer newer
// kernels have active_speed_ex, 32 bits for speeds beyond NDR; older ones have 0
// there (struct ib_uverbs_query_port_resp_ex).
const speedExInReserved = 2

// laneGbps decodes enum ib_port_speed.
func laneGbps(v uint32) float64 {
	switch v {
	case 1:
		return 2.5 // SDR
	case 2:
		return 5 // DDR
	case 4, 8:
		return 10 // QDR, FDR10
	case 16:
		return 14 // FDR
	case 32:
		return 25 // EDR
	case 64:
		return 50 // HDR
	case 128:
		return 100 // NDR
	case 256:
		return 200 // XDR
	}
	return 0
}
