package archon

import (
	"iter"

	"github.com/pkg/errors"
)

// MaxMetadata bounds the metadata of one message, in bytes as encoded: an entry takes
// its key, its value and 3 bytes.
const MaxMetadata = 8 << 10

// metaAlign keeps the payload behind metadata aligned as the one behind the header.
const metaAlign = 8

// Metadata is a list of keys and values beside a message's payload: who asks, the
// trace that a call belongs to. The zero value is empty. As encoded it is a run of
//
//	0  u8   key length, 1 to 255
//	1  u16  value length, little-endian
//	3  key, then value
//
// and zeros up to a multiple of 8 bytes.
type Metadata struct {
	b []byte
}

// Add appends an entry; a key may have several. Keys are of a-z, 0-9, '-', '_' and
// '.', at most 255 bytes, values any bytes. It fails with InvalidArgument when the key is
// no such key or the whole grows beyond MaxMetadata; m is as before then.
func (m *Metadata) Add(key, value string) error {
	if !validKey(key) {
		return Errorf(InvalidArgument, "metadata key %.40q, must be 1 to 255 of a-z, 0-9, '-', '_' and '.'", key)
	}
	if n := len(m.b) + 3 + len(key) + len(value); n > MaxMetadata {
		return Errorf(InvalidArgument, "metadata of %d bytes with key %q, at most %d", n, key, MaxMetadata)
	}
	m.b = append(m.b, byte(len(key)), byte(len(value)), byte(len(value)>>8))
	m.b = append(m.b, key...)
	m.b = append(m.b, value...)
	return nil
}

func validKey[S string | []byte](key S) bool {
	if len(key) == 0 || len(key) > 255 {
		return false
	}
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// Get gives the first value of key; the bytes are the metadata's own.
func (m Metadata) Get(key string) (value []byte, ok bool) {
	for b := m.b; len(b) > 0 && b[0] != 0; {
		k, v, rest := entry(b)
		if string(k) == key {
			return v, true
		}
		b = rest
	}
	return nil, false
}

// All gives the entries in the order in which they were added. The bytes are the
// metadata's own.
func (m Metadata) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for b := m.b; len(b) > 0 && b[0] != 0; {
			k, v, rest := entry(b)
			if !yield(k, v) {
				return
			}
			b = rest
		}
	}
}

// Empty tells whether there are no entries.
func (m Metadata) Empty() bool { return len(m.b) == 0 }

// Reset empties m and keeps its memory.
func (m *Metadata) Reset() { m.b = m.b[:0] }

// CopyFrom makes m a copy of other, for metadata that must live longer than the
// message it came with.
func (m *Metadata) CopyFrom(other Metadata) {
	rest := other.b
	for len(rest) > 0 && rest[0] != 0 { // the zeros at the end are not entries
		_, _, rest = entry(rest)
	}
	m.b = append(m.b[:0], other.b[:len(other.b)-len(rest)]...)
}

// entry cuts the first entry off checked metadata.
func entry(b []byte) (key, value, rest []byte) {
	k := 3 + int(b[0])
	v := k + int(b[1]) + int(b[2])<<8
	return b[3:k], b[k:v], b[v:]
}

// wireSize is what m takes in a message.
func (m *Metadata) wireSize() int { return (len(m.b) + metaAlign - 1) &^ (metaAlign - 1) }

// put writes m behind a message's header.
func (m *Metadata) put(b []byte) {
	n := copy(b, m.b)
	clear(b[n:m.wireSize()])
}

// checkMetadata checks what a peer sent as metadata, with the zeros that end it.
func checkMetadata(b []byte) error {
	for len(b) > 0 && b[0] != 0 {
		if len(b) < 3 || len(b) < 3+int(b[0])+int(b[1])+int(b[2])<<8 {
			return errors.Wrapf(ErrProtocol, "metadata with an entry beyond its end, %d bytes are left", len(b))
		}
		key, _, rest := entry(b)
		if !validKey(key) {
			return errors.Wrapf(ErrProtocol, "metadata with key %.40q", key)
		}
		b = rest
	}
	if len(b) >= metaAlign {
		return errors.Wrapf(ErrProtocol, "metadata with %d bytes behind its end", len(b))
	}
	for _, c := range b {
		if c != 0 {
			return errors.Wrap(ErrProtocol, "metadata with bytes behind its end")
		}
	}
	return nil
}
