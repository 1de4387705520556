package channel

import (
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/pkg/errors"
)

// DNS is a resolver of the addresses of a host name: each is a replica, at the same
// ports. A Kubernetes headless service has such a name.
type DNS struct {
	Host     string
	RDMAPort int           // 0: no RDMA
	TCPPort  int           // 0: no TCP
	Interval time.Duration // between two lookups; 0: 5 s
	// LookupHost asks for the addresses; nil: net.DefaultResolver does.
	LookupHost func(ctx context.Context, host string) (addrs []string, err error)
}

// Watch implements Resolver.
func (d DNS) Watch(ctx context.Context, update func([]Endpoint, error)) {
	look := d.LookupHost
	if look == nil {
		look = net.DefaultResolver.LookupHost
	}
	var last []string
	every(ctx, d.Interval, 5*time.Second, func() {
		addrs, err := look(ctx, d.Host)
		if err == nil && len(addrs) > maxEndpoints {
			err = errors.Errorf("%d addresses, at most %d", len(addrs), maxEndpoints)
		}
		if err != nil {
			if ctx.Err() == nil {
				update(nil, errors.WithMessagef(err, "channel: look %s up", d.Host))
			}
			return
		}
		addrs = append([]string{}, addrs...) // ours, and not nil
		slices.Sort(addrs)
		addrs = slices.Compact(addrs)
		if last == nil || !slices.Equal(addrs, last) {
			last = addrs
			update(d.endpoints(addrs), nil)
		}
	})
}

func (d DNS) endpoints(addrs []string) []Endpoint {
	list := make([]Endpoint, len(addrs))
	for i, a := range addrs {
		list[i].Name = a
		if d.RDMAPort != 0 {
			list[i].RDMA = net.JoinHostPort(a, strconv.Itoa(d.RDMAPort))
		}
		if d.TCPPort != 0 {
			list[i].TCP = net.JoinHostPort(a, strconv.Itoa(d.TCPPort))
		}
	}
	return list
}
