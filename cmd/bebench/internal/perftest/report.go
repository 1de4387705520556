package perftest

import (
	"encoding/binary"
	"math"
)

// Report is what the initiator of one-sided operations tells the other end, which
// cannot measure. Bandwidths are in the unit that the end was told to print, by
// default 2^20 bytes a second.
type Report struct {
	SizeBytes uint64
	Iters     uint64 // of all queue pairs together
	Peak      float64
	Average   float64
	MsgRate   float64 // million a second
}

// fields are the report's numbers in their order on the wire; each is a step of its
// own, 8 bytes, big-endian.
func (r *Report) fields() [5]uint64 {
	return [...]uint64{r.SizeBytes, r.Iters, math.Float64bits(r.Peak), math.Float64bits(r.Average), math.Float64bits(r.MsgRate)}
}

func reportOf(f [5]uint64) Report {
	return Report{f[0], f[1], math.Float64frombits(f[2]), math.Float64frombits(f[3]), math.Float64frombits(f[4])}
}

// Report exchanges reports. What the server of a test in one direction sends has no
// meaning: perftest leaves it undefined.
func (c *Conn) Report(mine Report) (Report, error) {
	f := mine.fields()
	for i := range f {
		b, err := c.swap("report", binary.BigEndian.AppendUint64(nil, f[i]))
		if err != nil {
			return Report{}, err
		}
		f[i] = binary.BigEndian.Uint64(b)
	}
	return reportOf(f), nil
}
