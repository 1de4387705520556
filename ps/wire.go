package ps

import (
	"encoding/binary"
	"math"

	"github.com/byteexpress/byteexpress/archon"
)

// The methods. Both requests begin alike, little-endian:
//
//	 0  u32  count of keys
//	 4  u32  dimension of the rows
//	 8  u32  shard that the request is for, and bit 31 if the client has a map
//	12  u32  shards in all, or the version of the map
//
// Then, of a push alone, its id:
//
//	16  u64  birth of the client's id; 0: the push has no id
//	24  u64  nonce of the client's id
//	32  u64  sequence number at this shard, from 1
//
// and the count keys of u64, for a push followed by count * dimension gradients of
// float32. A fetch is answered with count * dimension float32, a push with nothing.
var (
	MethodFetch = archon.NewMethod("ps.Fetch")
	MethodPush  = archon.NewMethod("ps.Push")
)

const (
	fetchHeader = 16
	pushHeader  = fetchHeader + 24
	byMap       = 1 << 31 // of the shard
)

// request is a checked view of a request.
type request struct {
	count     int
	keys      []byte // 8 bytes each
	gradients []byte // 4 bytes each; a push's
	id        requestID
	shard     uint32 // that it is for
	shards    uint32 // in all, if it names no map
	version   uint32 // of its map; 0: none
}

func putRequestHeader(b []byte, count, dim, shard, shards int) {
	binary.LittleEndian.PutUint32(b, uint32(count))
	binary.LittleEndian.PutUint32(b[4:], uint32(dim))
	binary.LittleEndian.PutUint32(b[8:], uint32(shard))
	binary.LittleEndian.PutUint32(b[12:], uint32(shards))
}

// putMapVersion makes a header that of a client with a map.
func putMapVersion(b []byte, version uint32) {
	binary.LittleEndian.PutUint32(b[8:], binary.LittleEndian.Uint32(b[8:])|byMap)
	binary.LittleEndian.PutUint32(b[12:], version)
}

func putRequestID(b []byte, id requestID) {
	binary.LittleEndian.PutUint64(b[fetchHeader:], id.client.Birth)
	binary.LittleEndian.PutUint64(b[fetchHeader+8:], id.client.Nonce)
	binary.LittleEndian.PutUint64(b[fetchHeader+16:], id.seq)
}

func (r *request) key(i int) uint64 { return binary.LittleEndian.Uint64(r.keys[8*i:]) }

// parseRequest checks a request against what the table is, and its length against what it
// says. Whether this shard may serve it is for check.
func parseRequest(b []byte, cfg *Config, push bool) (request, error) {
	header := fetchHeader
	if push {
		header = pushHeader
	}
	if len(b) < header {
		return request{}, archon.Errorf(archon.InvalidArgument, "request of %d bytes, at least %d", len(b), header)
	}
	count := uint64(binary.LittleEndian.Uint32(b))
	dim := binary.LittleEndian.Uint32(b[4:])
	r := request{count: int(count), shard: binary.LittleEndian.Uint32(b[8:]), shards: binary.LittleEndian.Uint32(b[12:])}
	if r.shard&byMap != 0 {
		r.shard, r.version, r.shards = r.shard&^byMap, r.shards, 0
	}
	switch {
	case uint64(dim) != uint64(cfg.Dim):
		return request{}, archon.Errorf(archon.InvalidArgument, "request for rows of %d values, they have %d", dim, cfg.Dim)
	case count > uint64(cfg.MaxKeys):
		return request{}, archon.Errorf(archon.InvalidArgument, "request for %d keys, at most %d", count, cfg.MaxKeys)
	}
	want := uint64(header) + 8*count
	if push {
		want += 4 * count * uint64(dim) // no overflow: both factors have 32 bits and count is bounded
	}
	if uint64(len(b)) != want {
		return request{}, archon.Errorf(archon.InvalidArgument, "request of %d bytes, %d keys make %d", len(b), count, want)
	}
	if push {
		r.id.client.Birth = binary.LittleEndian.Uint64(b[fetchHeader:])
		r.id.client.Nonce = binary.LittleEndian.Uint64(b[fetchHeader+8:])
		if r.id.seq = binary.LittleEndian.Uint64(b[fetchHeader+16:]); r.id.client.Birth != 0 && (r.id.seq == 0 || r.id.seq == math.MaxUint64) {
			return request{}, archon.Errorf(archon.InvalidArgument, "push number %d, must be 1 to 2^64 - 2", r.id.seq)
		}
	}
	keys := b[header:]
	r.keys, r.gradients = keys[:8*count], keys[8*count:]
	return r, nil
}
