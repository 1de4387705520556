package mr

import (
	"errors"
	"fmt"
)

// Split is one buffer registered as several regions, for a device whose regions are
// shorter than the buffer (verbs.DeviceAttr.MaxMRSize). Its methods other than Close
// may be called from any goroutine.
type Split struct {
	reg     Registrar
	regions []Region
	length  uint64
	step    uint64 // bytes of each region but the last
}

// Pages at whose multiples a buffer is cut, if a region holds one: a huge page is
// then of one region only.
const (
	hugePage  = 2 << 20
	smallPage = 4 << 10
)

// RegisterSplit registers buf as regions of at most limit bytes; 0 is no limit. On an
// error nothing stays registered. buf is as for [Registrar.Register].
func RegisterSplit(reg Registrar, buf []byte, access Access, limit uint64) (*Split, error) {
	n := uint64(len(buf))
	s := &Split{reg: reg, length: n, step: n}
	if limit > 0 && limit < n {
		s.step = limit
		for _, page := range []uint64{hugePage, smallPage} {
			if limit >= page {
				s.step = limit / page * page
				break
			}
		}
	}
	for first := true; first || len(buf) > 0; first = false { // an empty buffer is the registrar's to refuse
		piece := buf[:min(s.step, uint64(len(buf)))]
		r, err := reg.Register(piece, access)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("region %d of a buffer of %d bytes: %w", len(s.regions), n, err), s.Close())
		}
		s.regions = append(s.regions, r)
		buf = buf[len(piece):]
	}
	return s, nil
}

// Regions are the regions in the order of the buffer. The slice is the Split's own.
func (s *Split) Regions() []Region { return s.regions }

// At finds the region that has the buffer's byte at off, and how many bytes from
// there on it has; no region and 0 beyond the buffer. It does not allocate.
func (s *Split) At(off uint64) (r Region, left uint64) {
	if off >= s.length {
		return Region{}, 0
	}
	r = s.regions[off/s.step]
	return r, r.Length - off%s.step
}

// Close deregisters what is still registered; after an error it can be tried again.
func (s *Split) Close() error {
	for n := len(s.regions) - 1; n >= 0; n-- {
		if err := s.reg.Deregister(s.regions[n]); err != nil {
			return err
		}
		s.regions = s.regions[:n]
	}
	s.length = 0
	return nil
}
