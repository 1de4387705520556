package ps

import (
	"encoding/binary"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/pkg/errors"
)

// mapHead is what a block of the kind blockMap begins with: the ticket of the change that
// brought the map, u64, the lowest version that is served, u32, and which map it is,
// u32: 0 the shard's, 1 the one before it, while not all of its rows are served, 2 and
// above the past ones, oldest first. A part of the map's text follows; further blocks
// have the rest.
const mapHead = 16

// mapBlocks calls f with the payload of each block of the maps.
func (o *ownership) mapBlocks(f func(payload []byte) error) error {
	for which, m := range append([]*Map{o.m, o.before}, o.past...) {
		if m == nil {
			continue
		}
		text, err := m.MarshalText()
		if err != nil {
			return err
		}
		for len(text) > 0 {
			n := min(len(text), blockBytes)
			b := binary.LittleEndian.AppendUint64(nil, o.made)
			b = binary.LittleEndian.AppendUint32(b, o.floor)
			b = binary.LittleEndian.AppendUint32(b, uint32(which))
			if err := f(append(b, text[:n]...)); err != nil {
				return err
			}
			text = text[n:]
		}
	}
	return nil
}

// mapBlock takes one of them.
func (d *decoder) mapBlock(b []byte) error {
	if len(b) < mapHead || d.settled {
		return errors.Errorf("block of %d bytes of a map out of place", len(b))
	}
	d.own.made, d.own.floor = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:])
	which := binary.LittleEndian.Uint32(b[12:])
	if int(which) >= len(d.text) || len(d.text[which])+len(b) > maxMapText {
		return errors.Errorf("part %d of a map, of %d bytes", which, len(b))
	}
	d.text[which] = append(d.text[which], b[mapHead:]...)
	return nil
}

// settle decides by which map the shard is to go on, when the snapshot's is known, and
// whether the snapshot has every row that the shard then has.
func (d *decoder) settle() error {
	if d.settled {
		return nil
	}
	d.settled = true
	for i, text := range d.text {
		if len(text) == 0 {
			continue
		}
		m := new(Map)
		if err := m.UnmarshalText(text); err != nil {
			return err
		}
		switch i {
		case 0:
			d.own.m = m
		case 1:
			d.own.before = m
		default:
			d.own.past = append(d.own.past, m)
		}
	}
	is := &d.is
	if is.m == nil {
		if d.own.m != nil {
			return errors.Errorf("it is by map version %d, and the shard has no map", d.own.m.Version)
		}
		d.own = *is
		return nil
	}
	if d.own.m == nil { // what was there before maps is as the first one by hash
		d.own.m = NewMap(ByHash, make([][]channel.Endpoint, d.own.shards)...)
		d.own.m.Version = 0
	}
	has, wants := d.own.m, is.m
	switch {
	case has.By != wants.By:
		return errors.Errorf("it is by %v, and the shard by %v", has.By, wants.By)
	case d.copied && has.Version < wants.Version:
		return errors.Errorf("it is by map version %d, and the shard has %d already", has.Version, wants.Version)
	case has.Version > wants.Version || d.copied:
		return nil
	}
	if eachRange(has, wants, func(from, to int) bool {
		return to == is.shard && from != to || has.Version == wants.Version && from == is.shard && from != to
	}) {
		return errors.Errorf("it is by map version %d, by which other keys were the shard's than by version %d: restore by the snapshot's map, or one in which the shard has no keys that it had not then, and change that by Rebalance", has.Version, wants.Version)
	}
	d.own = *is
	return nil
}

// keeps tells whether a row is the shard's, or is brought to it.
func (d *decoder) keeps(key, hash uint64) bool {
	return d.own.mine(key, hash) || d.staged != nil && d.staged.owner(key, hash) == d.own.shard
}
