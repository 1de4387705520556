package ps

import (
	"encoding/binary"
	"hash/crc32"
	"hash/fnv"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/be"
)

// The methods of static tensors. A request is the tensor's name.
//
// ps.Tensor is answered with an edition: header and data, as they lie in the server's
// memory. ps.TensorPlace is answered with where that memory is, for READs:
//
//	 0  [40]u8  be.ReadToken of the edition
//	40  u64     version
//	48  u64     bytes of the edition, header and data
//	56  u64     nanoseconds that it stays readable after it was replaced
//
// All integers are little-endian.
var (
	MethodTensor      = archon.NewMethod("ps.Tensor")
	MethodTensorPlace = archon.NewMethod("ps.TensorPlace")
)

// The header of an edition, in front of its data:
//
//	 0  u64  "BXTENSOR"
//	 8  u64  FNV-1a of the name
//	16  u64  version
//	24  u64  bytes of data
//	32  u64  random number of the server's start
//	40  u32  CRC-32C of the data
//	44  u32  CRC-32C of bytes 0 to 43
//	48  u64  0: the newest edition; else it is not, and 1 more than the version of the one that followed, or 1: none did
//	56  u64  0
//
// All but the word at 48 is as it was from the first publication on.
const (
	tensorHeader = 64
	tensorMagic  = 0x524f534e45545842 // "BXTENSOR"
	tensorState  = 48
	placeBytes   = 64

	maxTensorName = 255
)

// edition is what a header says.
type edition struct {
	name    uint64
	version uint64
	length  uint64 // of the data
	server  uint64
	crc     uint32 // of the data
	state   uint64
}

func (h *edition) put(b []byte) {
	binary.LittleEndian.PutUint64(b, tensorMagic)
	binary.LittleEndian.PutUint64(b[8:], h.name)
	binary.LittleEndian.PutUint64(b[16:], h.version)
	binary.LittleEndian.PutUint64(b[24:], h.length)
	binary.LittleEndian.PutUint64(b[32:], h.server)
	binary.LittleEndian.PutUint32(b[40:], h.crc)
	binary.LittleEndian.PutUint32(b[44:], crc32.Checksum(b[:44], castagnoli))
	binary.LittleEndian.PutUint64(b[tensorState:], h.state)
	binary.LittleEndian.PutUint64(b[56:], 0)
}

// parse reads the header of b, an edition of the name, and says what is wrong with it; the
// data's checksum it leaves to checkData.
func (h *edition) parse(b []byte, name uint64) error {
	if len(b) < tensorHeader {
		return archon.Errorf(archon.DataLoss, "tensor of %d bytes, its header has %d", len(b), tensorHeader)
	}
	*h = edition{
		name: binary.LittleEndian.Uint64(b[8:]), version: binary.LittleEndian.Uint64(b[16:]), length: binary.LittleEndian.Uint64(b[24:]),
		server: binary.LittleEndian.Uint64(b[32:]), crc: binary.LittleEndian.Uint32(b[40:]), state: binary.LittleEndian.Uint64(b[tensorState:]),
	}
	sum := binary.LittleEndian.Uint32(b[44:])
	switch {
	case binary.LittleEndian.Uint64(b) != tensorMagic || sum != crc32.Checksum(b[:44], castagnoli):
		return archon.Errorf(archon.DataLoss, "memory that is no tensor: wrong mark or checksum of the header")
	case h.name != name:
		return archon.Errorf(archon.DataLoss, "the tensor has another name")
	case h.length != uint64(len(b)-tensorHeader):
		return archon.Errorf(archon.DataLoss, "tensor of %d bytes, its header says %d", len(b)-tensorHeader, h.length)
	}
	return nil
}

// checkData compares the data with the header's checksum.
func (h *edition) checkData(data []byte) error {
	if sum := crc32.Checksum(data, castagnoli); sum != h.crc {
		return archon.Errorf(archon.DataLoss, "checksum of version %d of the tensor is %#x, must be %#x", h.version, sum, h.crc)
	}
	return nil
}

// location is where an edition can be read.
type location struct {
	token   be.ReadToken
	version uint64
	bytes   uint64
	keep    time.Duration
}

func (p *location) put(b []byte) {
	n := copy(b, p.token[:])
	binary.LittleEndian.PutUint64(b[n:], p.version)
	binary.LittleEndian.PutUint64(b[n+8:], p.bytes)
	binary.LittleEndian.PutUint64(b[n+16:], uint64(p.keep))
}

func (p *location) parse(b []byte) error {
	if len(b) != placeBytes {
		return archon.Errorf(archon.Internal, "place of a tensor in %d bytes, must be %d", len(b), placeBytes)
	}
	n := copy(p.token[:], b)
	p.version, p.bytes = binary.LittleEndian.Uint64(b[n:]), binary.LittleEndian.Uint64(b[n+8:])
	p.keep = time.Duration(binary.LittleEndian.Uint64(b[n+16:]))
	if p.bytes < tensorHeader || p.bytes > 1<<31-1 || p.keep <= 0 {
		return archon.Errorf(archon.Internal, "tensor of %d bytes that is kept for %v", p.bytes, p.keep)
	}
	return nil
}

// tensorKey is how headers name a tensor.
func tensorKey(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}
