package qp

import (
	"fmt"

	"github.com/byteexpress/byteexpress/cq"
)

// Num is a queue pair number, 24 bits.
type Num = cq.QPNum

// PSN is a packet sequence number: 24 bits, wrapping. Compare PSNs with
// [PSN.Sub] or [PSN.Less], never with <.
type PSN uint32

// PSNMask covers the 24 bits of a PSN (IBTA 1.4, 9.2).
const PSNMask PSN = 1<<24 - 1

// Add gives the PSN n packets later.
func (p PSN) Add(n uint32) PSN { return (p + PSN(n)) & PSNMask }

// Sub gives the signed distance from q to p, in [-2^23, 2^23).
func (p PSN) Sub(q PSN) int32 { return int32((p-q)<<8) >> 8 }

// Less reports whether p comes before q.
func (p PSN) Less(q PSN) bool { return p.Sub(q) < 0 }

// MTU is a path MTU in the verbs encoding (enum ib_mtu): 1 is 256 bytes, 5 is
// 4096. The zero value is no MTU.
type MTU uint8

// The five path MTUs, by their payload bytes a packet.
const (
	MTU256  MTU = 1
	MTU512  MTU = 2
	MTU1024 MTU = 3
	MTU2048 MTU = 4
	MTU4096 MTU = 5
)

// Bytes is the MTU in bytes, 0 if the value is none of the five.
func (m MTU) Bytes() int {
	if m < MTU256 || m > MTU4096 {
		return 0
	}
	return 128 << m
}

// String is the MTU in bytes, as "4096".
func (m MTU) String() string {
	if b := m.Bytes(); b != 0 {
		return fmt.Sprint(b)
	}
	return fmt.Sprintf("MTU_%d", uint8(m))
}

// MTUOf gives the encoding of an MTU in bytes, and whether there is one.
func MTUOf(bytes int) (MTU, bool) {
	for m := MTU256; m <= MTU4096; m++ {
		if m.Bytes() == bytes {
			return m, true
		}
	}
	return 0, false
}
