package ps

import (
	"hash/crc64"
	"slices"

	"github.com/byteexpress/byteexpress/archon"
)

// ownership is which keys a shard serves. The shard's lock guards it.
type ownership struct {
	shard, shards int  // shards counts without a map
	m             *Map // nil: none
	// before is the map before m until the rows that m brings may be served; nil: they may.
	before *Map
	// floor is the lowest version of a map whose requests are served, if all of their keys
	// are this shard's: the one that the shard began with. Whose keys are where has not
	// changed for them, and it goes on being exactly once.
	floor uint32
	// past are the last maps before m, oldest first: a request by one of them is served if
	// its keys have been this shard's ever since. Otherwise a late copy of a push
	// that was refused, while they were not, would be applied when they come back.
	past []*Map
	made uint64 // ticket of the change that brought m; 0: the shard began with it

	summed *Map // the map that checksum is of
	crc    uint64
}

func newOwnership(cfg *Config) ownership {
	o := ownership{shard: cfg.Shard, shards: cfg.Shards, m: cfg.Map}
	o.floor = o.version()
	return o
}

// sum is a checksum of the map.
func (o *ownership) sum() uint64 {
	if o.summed != o.m {
		o.summed, o.crc = o.m, o.m.sum()
	}
	return o.crc
}

// sum is a checksum of a valid map.
func (m *Map) sum() uint64 {
	text, _ := m.MarshalText()
	return crc64.Checksum(text, crc64.MakeTable(crc64.ECMA))
}

// version is that of the map; 0: there is none.
func (o *ownership) version() uint32 {
	if o.m == nil {
		return 0
	}
	return o.m.Version
}

// owner gives the shard of a key.
func (o *ownership) owner(key, hash uint64) int {
	if o.m != nil {
		return o.m.owner(key, hash)
	}
	return shardOfHash(hash, o.shards)
}

func (o *ownership) mine(key, hash uint64) bool { return o.owner(key, hash) == o.shard }

// errNotOpen is of rows that came with a new map, while the shard that had them may not
// have given them up at all of its replicas.
var errNotOpen = &archon.Error{Code: archon.Unavailable, Message: "the map is changing, and the rows are not served here yet: retry", Retryable: true}

// takes tells whether requests by the map that r names are taken at all.
func (o *ownership) takes(r *request) error {
	if v := o.version(); r.version > v || r.version < o.floor {
		return o.wrongMap(r.version)
	}
	if uint64(r.shard) != uint64(o.shard) || o.m == nil && uint64(r.shards) != uint64(o.shards) {
		return archon.Errorf(archon.FailedPrecondition, "request for shard %d of %d, this is shard %d of %d",
			r.shard, r.shards, o.shard, o.shards)
	}
	return nil
}

func (o *ownership) wrongMap(version uint32) error {
	return archon.Errorf(archon.Aborted, "request by map version %d, this shard has %d", version, o.version())
}

// serves tells whether a key of a request that is taken is served.
func (o *ownership) serves(key, hash uint64, version uint32) error {
	switch {
	case o.owner(key, hash) != o.shard:
		if version != o.version() {
			return o.wrongMap(version)
		}
		return o.misplaced(key, hash)
	case version != o.version() && o.left(key, hash, version):
		return o.wrongMap(version)
	case o.before != nil && o.before.owner(key, hash) != o.shard:
		return errNotOpen
	}
	return nil
}

func (o *ownership) misplaced(key, hash uint64) error {
	return archon.Errorf(archon.FailedPrecondition, "key %#x belongs to shard %d, this is shard %d", key, o.owner(key, hash), o.shard)
}

// maxPast bounds the maps that are remembered.
const maxPast = 8

// left tells whether a key was not this shard's by a map since version.
func (o *ownership) left(key, hash uint64, version uint32) bool {
	return slices.ContainsFunc(o.past, func(m *Map) bool { return m.Version > version && m.owner(key, hash) != o.shard })
}

// become makes m the map, with the rows that it brings not served yet.
func (o *ownership) become(m *Map, made uint64) {
	if o.gains(m) {
		o.before = o.m
	}
	if o.past = append(o.past, o.m); len(o.past) > maxPast {
		o.floor = max(o.floor, o.past[0].Version+1)
		o.past = slices.Clone(o.past[1:])
	}
	o.m, o.made = m, made
}

// open has the rows served that the map brought.
func (o *ownership) open() { o.before = nil }

// gains and loses tell whether a map brings keys to the shard, or takes some away.
func (o *ownership) gains(m *Map) bool {
	return eachRange(o.m, m, func(from, to int) bool { return to == o.shard && from != to })
}

func (o *ownership) loses(m *Map) bool {
	return eachRange(o.m, m, func(from, to int) bool { return from == o.shard && from != to })
}

// eachRange tells whether f is true for the owners of any range by two maps.
func eachRange(from, to *Map, f func(from, to int) bool) bool {
	for i, j := 0, 0; ; {
		if f(from.Bounds[i].Shard, to.Bounds[j].Shard) {
			return true
		}
		lastFrom, lastTo := i+1 == len(from.Bounds), j+1 == len(to.Bounds)
		switch {
		case lastFrom && lastTo:
			return false
		case lastTo || !lastFrom && from.Bounds[i+1].First < to.Bounds[j+1].First:
			i++
		case lastFrom || to.Bounds[j+1].First < from.Bounds[i+1].First:
			j++
		default:
			i, j = i+1, j+1
		}
	}
}
