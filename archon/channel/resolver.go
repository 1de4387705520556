package channel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// Endpoint is a replica of a service.
type Endpoint struct {
	Name     string // unique in the service; empty: the addresses
	RDMA     string // "host:port" for connections over RDMA; empty: it has none
	TCP      string // "host:port" for connections over TCP; empty: it has none
	Zone     string // for Config.Locality
	Draining bool   // it takes no new calls while there is another
}

// name is the endpoint's name.
func (e *Endpoint) name() string {
	switch {
	case e.Name != "":
		return e.Name
	case e.RDMA == "" || e.RDMA == e.TCP:
		return e.TCP
	case e.TCP == "":
		return e.RDMA
	}
	return e.RDMA + "+" + e.TCP
}

// Resolver says where the replicas of a service are.
type Resolver interface {
	// Watch calls update with all replicas, first as soon as they are known, then
	// whenever they change, until ctx ends. What update got is not changed any more. An
	// error of one look is given to update, and the replicas stay as they were; Watch
	// returns when ctx ends, or when nothing can change any more.
	Watch(ctx context.Context, update func([]Endpoint, error))
}

type static []Endpoint

// Static is a resolver of replicas that never change.
func Static(list ...Endpoint) Resolver { return static(slices.Clone(list)) }

func (s static) Watch(_ context.Context, update func([]Endpoint, error)) { update(s, nil) }

// CheckEndpoints refuses a list that a channel cannot work with: two replicas have the same
// name, or one has no address.
func CheckEndpoints(list []Endpoint) error {
	names := map[string]bool{}
	for i := range list {
		e := &list[i]
		if e.RDMA == "" && e.TCP == "" {
			return errors.Errorf("replica %d, %q, has no address", i, e.Name)
		}
		if names[e.name()] {
			return errors.Errorf("two replicas have the name %q", e.name())
		}
		names[e.name()] = true
	}
	return nil
}

// maxEndpoints bounds what a file or a name server can make a channel connect to.
const maxEndpoints = 10_000

// ParseEndpoints reads replicas from text: one a line, words in any order. '#' begins a
// comment.
//
//	name=a rdma=10.0.0.1:700 tcp=10.0.0.1:701 zone=x
//	name=b tcp=10.0.0.2:701 draining
func ParseEndpoints(text []byte) ([]Endpoint, error) {
	var list []Endpoint
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var e Endpoint
		for _, word := range words {
			if err := e.set(word); err != nil {
				return nil, errors.WithMessagef(err, "line %d", n)
			}
		}
		if len(list) == maxEndpoints {
			return nil, errors.Errorf("line %d: more than %d replicas", n, maxEndpoints)
		}
		list = append(list, e)
	}
	return list, CheckEndpoints(list)
}

func (e *Endpoint) set(word string) error {
	key, value, has := strings.Cut(word, "=")
	if word == "draining" {
		e.Draining = true
		return nil
	}
	fields := map[string]*string{"name": &e.Name, "rdma": &e.RDMA, "tcp": &e.TCP, "zone": &e.Zone}
	f := fields[key]
	switch {
	case f == nil:
		return fmt.Errorf("%q: known are name=, rdma=, tcp=, zone= and draining", word)
	case !has || value == "":
		return fmt.Errorf("%q has no value", word)
	case *f != "":
		return fmt.Errorf("%q: %s is given twice", word, key)
	}
	*f = value
	return nil
}

// String is the endpoint as ParseEndpoints reads it.
func (e Endpoint) String() string {
	var words []string
	for _, f := range [][2]string{{"name", e.Name}, {"rdma", e.RDMA}, {"tcp", e.TCP}, {"zone", e.Zone}} {
		if f[1] != "" {
			words = append(words, f[0]+"="+f[1])
		}
	}
	if e.Draining {
		words = append(words, "draining")
	}
	return strings.Join(words, " ")
}
