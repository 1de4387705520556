package verbs

import (
	"fmt"

	"github.com/byteexpress/byteexpress/mr"
)

// CheckCQ reports whether a device with these limits can make such a CQ. Every
// backend calls it before it asks the device.
func (a *DeviceAttr) CheckCQ(c CQConfig) error {
	if err := within("CQ entries", c.Entries, 1, a.MaxCQE); err != nil {
		return err
	}
	if vectors := max(a.CompVectors, 1); c.Vector < 0 || c.Vector >= vectors {
		return fmt.Errorf("%w: completion vector %d, must be 0 to %d", ErrLimit, c.Vector, vectors-1)
	}
	return nil
}

// CheckQP reports whether a device with these limits can make such a queue pair.
func (a *DeviceAttr) CheckQP(c QPConfig) error {
	if c.SendCQ == nil || c.RecvCQ == nil {
		return fmt.Errorf("%w: a queue pair needs a send and a receive CQ", ErrLimit)
	}
	if c.OwnDoorbell && !a.OwnDoorbells {
		return &UnsupportedError{Feature: "a doorbell register of the queue pair's own (thread domain)", Missing: "the device"}
	}
	if c.SRQ != nil {
		c.Caps.RecvWR, c.Caps.RecvSGE = 0, 0
	}
	for _, l := range []struct {
		what     string
		n, limit int
	}{
		{"send requests", c.Caps.SendWR, a.MaxQPWR},
		{"receive requests", c.Caps.RecvWR, a.MaxQPWR},
		{"segments a send request", c.Caps.SendSGE, a.MaxSGE},
		{"segments a receive request", c.Caps.RecvSGE, a.MaxSGE},
	} {
		if err := within(l.what, l.n, 0, l.limit); err != nil {
			return err
		}
	}
	if a.MaxInline > 0 {
		return within("inline bytes", c.Caps.Inline, 0, a.MaxInline)
	}
	return within("inline bytes", c.Caps.Inline, 0, 1<<16)
}

// CheckSRQ reports whether a device with these limits can make such a shared
// receive queue.
func (a *DeviceAttr) CheckSRQ(c SRQConfig) error {
	if a.MaxSRQ == 0 {
		return &UnsupportedError{Feature: "shared receive queues", Missing: "the device"}
	}
	if err := within("shared receive requests", c.Caps.RecvWR, 1, a.MaxSRQWR); err != nil {
		return err
	}
	return within("segments a shared receive request", c.Caps.RecvSGE, 0, a.MaxSRQSGE)
}

// CheckMR reports whether a device with these limits can register such memory.
func (a *DeviceAttr) CheckMR(buf []byte, access mr.Access) error {
	if len(buf) == 0 {
		return fmt.Errorf("%w: memory region of 0 bytes", ErrLimit)
	}
	if a.MaxMRSize > 0 && uint64(len(buf)) > a.MaxMRSize {
		return fmt.Errorf("%w: memory region of %d bytes, at most %d: split it", ErrLimit, len(buf), a.MaxMRSize)
	}
	if access&mr.OnDemand != 0 && !a.OnDemand.Supported {
		return &UnsupportedError{Feature: "on-demand paging", Missing: "the device"}
	}
	return access.Check()
}

// CheckDMABuf reports whether a device with these limits can register such a range.
func (a *DeviceAttr) CheckDMABuf(b DMABuf, access mr.Access) error {
	const page = 4096 // the smallest; larger ones are the driver's to refuse
	switch {
	case b.Length == 0 || b.Offset+b.Length < b.Offset || b.Addr+b.Length < b.Addr:
		return fmt.Errorf("%w: dmabuf range of %d bytes at %#x, addressed from %#x", ErrLimit, b.Length, b.Offset, b.Addr)
	case a.MaxMRSize > 0 && b.Length > a.MaxMRSize:
		return fmt.Errorf("%w: memory region of %d bytes, at most %d: split it", ErrLimit, b.Length, a.MaxMRSize)
	case b.Offset%page != b.Addr%page:
		return fmt.Errorf("%w: offset %#x and address %#x lie at different places in their pages", ErrLimit, b.Offset, b.Addr)
	}
	return access.Check()
}

func within(what string, n, low, high int) error {
	if n < low || n > high {
		return fmt.Errorf("%w: %d %s, must be %d to %d", ErrLimit, n, what, low, high)
	}
	return nil
}
