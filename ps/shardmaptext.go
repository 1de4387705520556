package ps

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/pkg/errors"
)

// The text of a map, in files and in the answer of ps.Map, a word and its values a line:
// first version and sharding, then the bounds with their shards, then each shard with
// its replicas below it, as channel.ParseEndpoints reads them, and "end", without which
// the text is taken to be cut off. '#' begins a comment.
//
//	version 3
//	by range
//	from 0x0 0
//	from 0x8000000000000000 1
//	shard 0
//	name=a tcp=10.0.0.1:701
//	name=b tcp=10.0.0.2:701
//	shard 1
//	name=c rdma=10.0.0.3:700 tcp=10.0.0.3:701
//	end

// maxMapText bounds the text: as many bounds and replicas as there may be fit.
const maxMapText = 40 << 20

var shardings = []string{ByHash: "hash", ByRange: "range"}

// String is the word of it in a map's text.
func (s Sharding) String() string {
	if int(s) < len(shardings) {
		return shardings[s]
	}
	return fmt.Sprintf("Sharding(%d)", uint8(s))
}

// MarshalText gives the text of a valid map; it is read back as the same map.
func (m *Map) MarshalText() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "version %d\nby %v\n", m.Version, m.By)
	for _, at := range m.Bounds {
		fmt.Fprintf(&b, "from %#x %d\n", at.First, at.Shard)
	}
	for i, list := range m.Replicas {
		fmt.Fprintf(&b, "shard %d\n", i)
		for _, e := range list {
			line := e.String()
			if same, err := channel.ParseEndpoints([]byte(line)); err != nil || len(same) != 1 || same[0] != e {
				return nil, errors.Errorf("ps: replica %q of shard %d has no text: its words have no blanks and no '#', and it has an address", line, i)
			}
			b.WriteString(line + "\n")
		}
	}
	b.WriteString("end\n")
	if b.Len() > maxMapText {
		return nil, errors.Errorf("ps: the text of a map has %d bytes, at most %d: shorten the names of replicas", b.Len(), maxMapText)
	}
	return b.Bytes(), nil
}

// UnmarshalText reads a map, which is whole and valid after that.
func (m *Map) UnmarshalText(text []byte) error {
	if len(text) > maxMapText {
		return errors.Errorf("ps: map: the text has %d bytes, at most %d", len(text), maxMapText)
	}
	var got Map
	n, given := 0, map[string]bool{} // lines of which there is one
	replicas := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		err := got.set(words, &replicas)
		switch once := slices.Contains([]string{"version", "by", "end"}, words[0]); {
		case given["end"]:
			err = errors.New("there is more after the end")
		case once && given[words[0]]:
			err = errors.Errorf("%s is given twice", words[0])
		case once:
			given[words[0]] = true
		}
		if err != nil {
			return errors.WithMessagef(err, "ps: map: line %d", n)
		}
	}
	switch {
	case !given["end"]:
		return errors.Errorf("ps: map: the text is cut off after line %d: its last line must be \"end\"", n)
	case !given["by"]:
		return errors.New("ps: map: there is no line \"by hash\" or \"by range\"")
	}
	if err := got.Validate(); err != nil {
		return err
	}
	*m = got
	return nil
}

// set takes the words of a line, of which there is one at least, and counts replicas.
func (m *Map) set(words []string, replicas *int) error {
	value := ""
	if len(words) == 2 {
		value = words[1]
	}
	var err error
	switch words[0] {
	case "end":
		if len(words) > 1 {
			err = errors.New("end stands alone")
		}
	case "version":
		var version uint64
		version, err = strconv.ParseUint(value, 10, 32)
		m.Version = uint32(version)
	case "by":
		switch value {
		case shardings[ByHash]:
			m.By = ByHash
		case shardings[ByRange]:
			m.By = ByRange
		default:
			err = errors.Errorf("sharding %q, there are hash and range", value)
		}
	case "from":
		if len(words) != 3 || len(m.Bounds) == maxBounds {
			return errors.New("a range is from, its first position and its shard, and there are not too many")
		}
		var at Bound
		if at.First, err = strconv.ParseUint(words[1], 0, 64); err == nil {
			at.Shard, err = strconv.Atoi(words[2])
		}
		m.Bounds = append(m.Bounds, at)
	case "shard":
		if value != strconv.Itoa(len(m.Replicas)) || len(m.Replicas) == maxMapShards {
			return errors.Errorf("shard %q, next is %d of at most %d", value, len(m.Replicas), maxMapShards)
		}
		m.Replicas = append(m.Replicas, nil)
	default:
		last := len(m.Replicas) - 1
		if *replicas++; last < 0 || *replicas > maxMapReplicas {
			return errors.Errorf("%q before the first shard, or after %d replicas, which are as many as may", words[0], maxMapReplicas)
		}
		var list []channel.Endpoint
		list, err = channel.ParseEndpoints([]byte(strings.Join(words, " ")))
		m.Replicas[last] = append(m.Replicas[last], list...)
	}
	return err
}
