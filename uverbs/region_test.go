//go:build linux

package uverbs

import (
	"errors"
	"math"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// What the kernel is asked for: nothing of what does not change is in the request.
func TestReregister(t *testing.T) {
	k := newFake(t)
	c := k.open()
	for _, tt := range []struct {
		change                      Rereg
		flags, access               uint32
		start, length, remoteStarts uint64
	}{
		{Rereg{Rights: true, Access: mr.LocalWrite, Addr: 1, Length: 2}, 4, 1, 0, 0, 0},
		{Rereg{Memory: true, Addr: 4096, Length: 8192, Access: mr.LocalWrite}, 1, 0, 4096, 8192, 4096},
		{Rereg{Memory: true, Rights: true, Addr: 5, Length: 6, Access: mr.RemoteRead | mr.RelaxedOrdering}, 5, 4 | 1<<20, 5, 6, 5},
	} {
		if _, _, err := c.ReregMR(7, 8, tt.change); err != nil {
			t.Fatal(err)
		}
		in := k.last().Attr("CORE_IN").Bytes
		if reregMRHandle.Get(in) != 7 || reregMRPDHandle.Get(in) != 8 || reregMRFlags.Get(in) != tt.flags || reregMRAccessFlags.Get(in) != tt.access ||
			reregMRStart.Get(in) != tt.start || reregMRLength.Get(in) != tt.length || reregMRHcaVA.Get(in) != tt.remoteStarts {
			t.Errorf("%+v: request %x", tt.change, in)
		}
	}
}

func TestAdvise(t *testing.T) {
	k := newFake(t)
	c := k.open()
	ranges := []qp.SGE{{Addr: 1 << 40, Length: 2, LKey: 3}, {Addr: 4, Length: 5, LKey: 6}}
	if err := c.AdviseMR(9, mr.PrefetchNoFault, true, ranges); err != nil {
		t.Fatal(err)
	}
	call := k.last()
	b := call.Attr("SGE_LIST").Bytes
	if u64(call.Attr("ADVICE").Value) != 2 || u32(call.Attr("FLAGS").Value) != 1 || len(b) != 32 ||
		sgeAddr.Get(b) != 1<<40 || sgeLength.Get(b) != 2 || sgeLkey.Get(b) != 3 || sgeAddr.Get(b[16:]) != 4 || sgeLkey.Get(b[16:]) != 6 {
		t.Errorf("request %+v", call)
	}
	if err := c.AdviseMR(9, mr.Prefetch, false, make([]qp.SGE, maxRanges)); err != nil || u32(k.last().Attr("FLAGS").Value) != 0 {
		t.Errorf("as many ranges as fit: %v", err)
	}
	n := len(k.calls)
	for _, ranges := range [][]qp.SGE{nil, make([]qp.SGE, maxRanges+1)} {
		if err := c.AdviseMR(9, mr.Prefetch, false, ranges); !errors.Is(err, verbs.ErrLimit) || len(k.calls) != n {
			t.Errorf("%d ranges: %v", len(ranges), err)
		}
	}
}

// Optional access flags are left out in every request that has access flags.
func TestOptionalAccessEverywhere(t *testing.T) {
	const access = mr.LocalWrite | mr.RelaxedOrdering | 1<<29
	for _, tolerant := range []bool{true, false} {
		k := newFake(t)
		c := k.open()
		want := uint32(access)
		if !tolerant {
			c.core = 0
			want = uint32(mr.LocalWrite)
		}
		if _, _, _, err := c.RegDMABufMR(1, 5, 0, 4096, 4096, access); err != nil || u32(k.last().Attr("ACCESS_FLAGS").Value) != want {
			t.Errorf("tolerant %v: dmabuf: %v, flags %x", tolerant, err, k.last().Attr("ACCESS_FLAGS").Value)
		}
		if _, _, err := c.ReregMR(1, 2, Rereg{Rights: true, Access: access}); err != nil || reregMRAccessFlags.Get(k.last().Attr("CORE_IN").Bytes) != want {
			t.Errorf("tolerant %v: re-registration: %v", tolerant, err)
		}
	}
}

func TestWindowRequest(t *testing.T) {
	k := newFake(t)
	c := k.open()
	h, _, err := c.AllocMW(21)
	if err != nil || h == 0 {
		t.Fatalf("handle %d, %v", h, err)
	}
	if in := k.last().Attr("CORE_IN").Bytes; allocMWPDHandle.Get(in) != 21 || allocMWType.Get(in) != 2 {
		t.Errorf("request %x", in)
	}
	if err := c.DeallocMW(h); err != nil || u32(k.last().Attr("HANDLE").Value) != uint32(h) {
		t.Errorf("freeing: %v, %+v", err, k.last())
	}
}

// Who lacks a request, and since when it is there.
func TestTooOld(t *testing.T) {
	for _, tt := range []struct {
		release string
		m       *method
		errno   syscall.Errno
		text    string // of the error
	}{
		{"5.10.0-32-amd64", mRegDMABufMR, unix.EPROTONOSUPPORT, "not supported by kernel 5.10.0-32-amd64 (needs kernel 5.12 or later)"},
		{"6.1.0-50-amd64", mRegDMABufMR, unix.EPROTONOSUPPORT, "not supported by the driver rxe of kernel 6.1.0-50-amd64"},
		{"6.1.0-50-amd64", mRegDMABufMR, unix.EOPNOTSUPP, "not supported by the driver rxe of kernel 6.1.0-50-amd64"},
		{"6.1.0-50-amd64", mReregMR, unix.EOPNOTSUPP, "the driver rxe of kernel 6.1.0-50-amd64 (needs kernel 6.5 or later)"},
		{"6.12.117", mReregMR, unix.EOPNOTSUPP, "the driver rxe of kernel 6.12.117 ("},
		{"5.10.1", mAllocMW, unix.EOPNOTSUPP, "the driver rxe of kernel 5.10.1 (needs kernel 5.14 or later)"},
		{"4.9.0", mAllocPD, unix.ENOTTY, "verbs by ioctl: not supported by kernel 4.9.0 (needs kernel 5.0 or later)"},
		{"strange", mAllocPD, unix.EPROTONOSUPPORT, "not supported by kernel strange (needs kernel 5.0 or later)"},
	} {
		k := newFake(t)
		c := k.open()
		c.sys.Release = tt.release
		k.fail = func(*Call) syscall.Errno { return tt.errno }
		err := verb[tt.m](c)
		var u *verbs.UnsupportedError
		if !errors.As(err, &u) || !errors.Is(err, verbs.ErrUnsupported) || !errors.Is(err, tt.errno) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %q", tt.release, err, tt.text)
		}
	}
}

// All fields of the extended answers arrive where they belong.
func TestExtendedAttributes(t *testing.T) {
	b := make([]byte, queryDeviceRespSize)
	base, odp := queryDeviceRespBase.In(b), queryDeviceRespODP.In(b)
	deviceCapFlags.Put(base, 1<<13|1<<24)
	queryDeviceRespCapFlags.Put(b, 1<<38|1<<24)
	deviceAtomicCap.Put(base, 2)
	deviceMaxMW.Put(base, 77)
	deviceMaxPKeys.Put(base, 64)
	deviceLocalCAAckDelay.Put(base, 16)
	deviceSysImageGUID.Put(base, math.MaxUint64-1)
	odpCapsGeneral.Put(odp, 3)
	odpCapsRC.Put(odp, 0x1f)
	queryDeviceRespTimestampMask.Put(b, math.MaxUint64)
	queryDeviceRespClock.Put(b, 156250)
	a := deviceAttr(b, 8)
	if a.Flags != verbs.FlagSRQResize|verbs.FlagMemWindow2B|verbs.FlagFlushGlobal || !a.Flags.Windows() || !a.Atomics || !a.AtomicsGlobal ||
		a.MaxMW != 77 || a.MaxPKeys != 64 || a.AckDelay != 16 || a.SystemGUID != math.MaxUint64-1 || a.CompVectors != 8 ||
		a.OnDemand != (verbs.OnDemand{Supported: true, Implicit: true, RC: 0x1f}) || a.TimestampMask != math.MaxUint64 || a.ClockKHz != 156250 {
		t.Errorf("attributes %+v", a)
	}
	if a := deviceAttr(make([]byte, queryDeviceRespSize), 0); a.Flags.Windows() || a.Atomics || a.OnDemand.Supported {
		t.Errorf("attributes of nothing: %+v", a)
	}
}

func TestPortSpeeds(t *testing.T) {
	for _, tt := range []struct {
		width, speed uint8
		ex           uint32
		name         string
		gbps         float64
	}{
		{2, 1, 0, "SDR", 10}, {2, 32, 32, "EDR", 100}, {2, 64, 64, "HDR", 200}, {2, 128, 128, "NDR", 400},
		{2, 128, 256, "XDR", 800}, // older fields cannot hold it
		{1, 16, 0, "FDR", 14}, {16, 64, 0, "HDR", 100}, {8, 8, 0, "FDR10", 120}, {4, 4, 0, "QDR", 80},
		{2, 0, 0, "SPEED_0", 0}, {3, 32, 0, "EDR", 0}, {2, 7, 0, "SPEED_7", 0},
	} {
		b := make([]byte, portRespSize)
		portActiveWidth.Put(b, tt.width)
		portActiveSpeed.Put(b, tt.speed)
		portActiveSpeedEx.Put(b, tt.ex)
		portLID.Put(b, 0x1234)
		portSMLID.Put(b, 0x5678)
		portPhysState.Put(b, 5)
		if p := portAttr(b); p.Speed.String() != tt.name || p.SpeedGbps != tt.gbps || p.LID != 0x1234 || p.SMLID != 0x5678 || p.PhysState != verbs.PhysLinkUp {
			t.Errorf("width %d, speed %d, %d: %+v", tt.width, tt.speed, tt.ex, p)
		}
	}
}
