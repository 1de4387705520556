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
	return deviceAttr(out, c.vectors), nil
}

// deviceAttr decodes struct ib_uverbs_ex_query_device_resp. What the kernel does
// not know of it is 0.
func deviceAttr(out []byte, vectors int) verbs.DeviceAttr {
	b, odp := queryDeviceRespBase.In(out), queryDeviceRespODP.In(out)
	v := deviceFwVer.Get(b)
	return verbs.DeviceAttr{
		FirmwareVersion: fmt.Sprintf("%d.%d.%d", v>>32, v>>16&0xffff, v&0xffff),
		VendorID:        deviceVendorID.Get(b), VendorPartID: deviceVendorPartID.Get(b), HWVersion: deviceHWVer.Get(b),
		MaxQP: int(deviceMaxQP.Get(b)), MaxQPWR: int(deviceMaxQPWR.Get(b)), MaxSGE: int(deviceMaxSGE.Get(b)),
		MaxCQ: int(deviceMaxCQ.Get(b)), MaxCQE: int(deviceMaxCQE.Get(b)), MaxMR: int(deviceMaxMR.Get(b)), MaxMRSize: deviceMaxMRSize.Get(b),
		MaxPD: int(deviceMaxPD.Get(b)), MaxSRQ: int(deviceMaxSRQ.Get(b)), MaxSRQWR: int(deviceMaxSRQWR.Get(b)), MaxSRQSGE: int(deviceMaxSRQSGE.Get(b)),
		MaxReads: int(deviceMaxQPInitRdAtom.Get(b)), MaxDestReads: int(deviceMaxQPRdAtom.Get(b)),
		Atomics: deviceAtomicCap.Get(b) != 0, CompVectors: vectors, PageSizes: devicePageSizeCap.Get(b),
		Flags:         verbs.DeviceFlags(uint64(deviceCapFlags.Get(b)) | queryDeviceRespCapFlags.Get(out)),
		AtomicsGlobal: deviceAtomicCap.Get(b) == atomicGlobal, MaxMW: int(deviceMaxMW.Get(b)), SystemGUID: deviceSysImageGUID.Get(b),
		MaxPKeys: int(deviceMaxPKeys.Get(b)), AckDelay: qp.AckTimeout(deviceLocalCAAckDelay.Get(b)),
		OnDemand: verbs.OnDemand{
			Supported: odpCapsGeneral.Get(odp)&odpSupport != 0, Implicit: odpCapsGeneral.Get(odp)&odpSupportImplicit != 0,
			RC: verbs.OnDemandOps(odpCapsRC.Get(odp)),
		},
		TimestampMask: queryDeviceRespTimestampMask.Get(out), ClockKHz: queryDeviceRespClock.Get(out),
	}
}

// atomicGlobal is IB_ATOMIC_GLOB of enum ib_atomic_cap in the kernel's
// rdma/ib_verbs.h.
const atomicGlobal = 2

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
	return portAttr(b), nil
}

// portAttr decodes struct ib_uverbs_query_port_resp_ex. Speeds beyond 8 bits are in
// a field that older kernels (6.1) leave 0.
func portAttr(b []byte) verbs.PortAttr {
	width, speed := portWidth(portActiveWidth.Get(b)), verbs.Speed(portActiveSpeedEx.Get(b))
	if speed == 0 {
		speed = verbs.Speed(portActiveSpeed.Get(b))
	}
	return verbs.PortAttr{
		State: verbs.PortState(portState.Get(b)), PhysState: verbs.PhysState(portPhysState.Get(b)), LinkLayer: verbs.LinkLayer(portLinkLayer.Get(b)),
		MaxMTU: qp.MTU(portMaxMTU.Get(b)), ActiveMTU: qp.MTU(portActiveMTU.Get(b)),
		LID: portLID.Get(b), LMC: portLMC.Get(b), SMLID: portSMLID.Get(b), SMSL: portSMSL.Get(b),
		MaxMessage: portMaxMsgSz.Get(b), GIDs: int(portGIDTblLen.Get(b)), PKeys: int(portPKeyTblLen.Get(b)),
		Width: width, Speed: speed, SpeedGbps: float64(width) * speed.Gbps(),
	}
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
