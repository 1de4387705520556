package mlx5dev

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

func (f *file) queryDevice(c call) syscall.Errno {
	a, err := f.ctx.Attr()
	if err != nil {
		return errnoOf(err)
	}
	b := c.out("CORE_OUT")
	deviceFwVer.Put(b, 16<<32|35<<16|1000)
	deviceNodeGuid.Put(b, f.dev.hw.Info().NodeGUID)
	deviceMaxMRSize.Put(b, a.MaxMRSize)
	devicePageSizeCap.Put(b, a.PageSizes)
	deviceVendorID.Put(b, 0x2c9)
	deviceVendorPartID.Put(b, 0x1017)
	deviceHWVer.Put(b, a.HWVersion)
	deviceMaxQP.Put(b, uint32(a.MaxQP))
	deviceMaxQPWR.Put(b, uint32(a.MaxQPWR))
	deviceMaxSGE.Put(b, uint32(maxRecvDesc/segment))
	deviceMaxCQ.Put(b, uint32(a.MaxCQ))
	deviceMaxCQE.Put(b, uint32(a.MaxCQE))
	deviceCapFlags.Put(b, uint32(a.Flags))
	deviceMaxMW.Put(b, uint32(a.MaxMW))
	deviceMaxSRQ.Put(b, uint32(a.MaxSRQ))
	deviceMaxSRQWR.Put(b, uint32(min(a.MaxSRQWR, maxSharedWR-1)))
	deviceMaxSRQSGE.Put(b, uint32(min(a.MaxSRQSGE, maxRecvDesc/segment-1)))
	deviceMaxMR.Put(b, uint32(a.MaxMR))
	deviceMaxPD.Put(b, uint32(a.MaxPD))
	deviceMaxQPRdAtom.Put(b, uint32(a.MaxDestReads))
	deviceMaxQPInitRdAtom.Put(b, uint32(a.MaxReads))
	deviceAtomicCap.Put(b, 1) // of this NIC
	devicePhysPortCnt.Put(b, uint8(f.dev.hw.Info().Ports))
	return 0
}

func (f *file) queryPort(c call) syscall.Errno {
	p, err := f.ctx.Port(int(c.value("PORT_NUM")))
	if err != nil {
		return errnoOf(err)
	}
	b := c.out("RESP")
	portMaxMsgSz.Put(b, p.MaxMessage)
	portGIDTblLen.Put(b, uint32(p.GIDs))
	portPKeyTblLen.Put(b, uint16(p.PKeys))
	portLID.Put(b, p.LID)
	portState.Put(b, uint8(p.State))
	portMaxMTU.Put(b, uint8(p.MaxMTU))
	portActiveMTU.Put(b, uint8(p.ActiveMTU))
	portActiveWidth.Put(b, 2) // 4 lanes
	portActiveSpeed.Put(b, laneSpeed(p.SpeedGbps/4))
	portLinkLayer.Put(b, uint8(p.LinkLayer))
	return 0
}

// laneSpeed encodes enum ib_port_speed; a speed that none has is told as EDR, 25.
func laneSpeed(gbps float64) uint8 {
	switch gbps {
	case 2.5:
		return 1
	case 5:
		return 2
	case 10:
		return 4
	case 50:
		return 64
	case 100:
		return 128
	}
	return 32
}

func (f *file) queryGIDs(c call) syscall.Errno {
	if c.value("ENTRY_SIZE") != gidEntrySize {
		return unix.EINVAL
	}
	b, n := c.out("RESP_ENTRIES"), uint64(0)
	for port := 1; port <= f.dev.hw.Info().Ports; port++ {
		gids, err := f.ctx.GIDs(port)
		if err != nil {
			return errnoOf(err)
		}
		for _, g := range gids {
			if len(b) < gidEntrySize {
				return unix.ENOSPC
			}
			copy(gidEntryGID.In(b), g.GID[:])
			gidEntryGIDIndex.Put(b, uint32(g.Index))
			gidEntryPortNum.Put(b, uint32(port))
			gidEntryGIDType.Put(b, uint32(g.Type))
			gidEntryNetdevIfindex.Put(b, uint32(g.IfIndex))
			b = b[gidEntrySize:]
			n++
		}
	}
	binary.NativeEndian.PutUint64(c.out("RESP_NUM_ENTRIES"), n)
	return 0
}
