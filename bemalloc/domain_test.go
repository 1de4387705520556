package bemalloc

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/mr"
)

// recording notes with what rights memory is registered.
type recording struct {
	*registrar
	seen map[mr.Access]int
}

func (r recording) Register(buf []byte, access mr.Access) (mr.Region, error) {
	r.seen[access]++
	return r.registrar.Register(buf, access)
}

// TestKeyDomains: two pools on one device are two key domains. What is allocated from
// the local one is never registered for peers to write, no buffer lies in both, and
// neither pool takes or describes a buffer of the other.
func TestKeyDomains(t *testing.T) {
	const remote = mr.LocalWrite | mr.RemoteWrite
	dev := recording{newRegistrar(t), map[mr.Access]int{}}
	local, exposed := newPool(t, Config{Registrar: dev, Access: mr.LocalWrite}), newPool(t, Config{Registrar: dev, Access: remote})
	for _, n := range []int{100, 100 << 10, 5 << 20} {
		a, b := must(t)(local.Alloc(n)), must(t)(exposed.Alloc(n))
		ra, errA := local.MR(a)
		rb, errB := exposed.MR(b)
		if errA != nil || errB != nil || ra.RKey == rb.RKey {
			t.Errorf("%d bytes: %v %v, %v %v", n, ra, errA, rb, errB)
		}
		if rb.Contains(mr.Addr(a), uint64(n)) || ra.Contains(mr.Addr(b), uint64(n)) {
			t.Errorf("%d bytes: a buffer lies in a region of the other domain", n)
		}
		for _, x := range []struct {
			p *Pool
			b []byte
		}{{local, b}, {exposed, a}} {
			if _, err := x.p.MR(x.b); !errors.Is(err, ErrNotOwned) {
				t.Errorf("%d bytes: region from the wrong pool: %v", n, err)
			}
			if err := x.p.Free(x.b); !errors.Is(err, ErrBadFree) {
				t.Errorf("%d bytes: free to the wrong pool: %v", n, err)
			}
		}
		free(t, local, a)
		free(t, exposed, b)
	}
	if len(dev.seen) != 2 || dev.seen[mr.LocalWrite] == 0 || dev.seen[remote] == 0 {
		t.Errorf("registrations by rights: %v", dev.seen)
	}
}
