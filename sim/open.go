package sim

import (
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/verbs"
)

// Prefix begins the names of devices of the default fabric.
const Prefix = "sim:"

// The devices are counted from a number that is drawn, so that their GIDs are not those of
// another process: a peer there is refused, and not taken for one here.
var defaultFabric = sync.OnceValue(func() *Fabric {
	f := NewFabric(Config{})
	f.known = true
	f.numbers = rand.Uint32() & 0xffffff // three bytes of a GID, see DefaultGIDs
	return f
})

// Default is the process's fabric, on which Open finds its devices. Do not close
// it.
func Default() *Fabric { return defaultFabric() }

// Open gives a device of the default fabric. "sim:" is a new NIC each time, which
// is on the fabric while a context of it is open; "sim:NAME" is the NIC of that
// name, made at first use. The error of any other name wraps verbs.ErrNotFound.
func Open(name string) (verbs.Device, error) {
	if !strings.HasPrefix(name, Prefix) {
		return nil, errors.Wrapf(verbs.ErrNotFound, "open %q: simulated devices are called %s or %sNAME", name, Prefix, Prefix)
	}
	f := Default()
	if name == Prefix {
		return f.newSingle()
	}
	f.mu.RLock()
	d := f.devices[name]
	f.mu.RUnlock()
	if d != nil {
		return d, nil
	}
	d, err := f.NewDevice(name, DeviceConfig{})
	if err != nil { // another goroutine may have made it meanwhile
		f.mu.RLock()
		defer f.mu.RUnlock()
		if f.devices[name] != nil {
			return f.devices[name], nil
		}
		return nil, err
	}
	return d, nil
}

// newSingle makes a NIC without a name of its own.
func (f *Fabric) newSingle() (*Device, error) {
	f.mu.Lock()
	f.numbers++
	number := f.numbers
	f.mu.Unlock()
	d, err := newDevice(f, Prefix, number, DeviceConfig{})
	if err != nil {
		return nil, errors.Wrapf(err, "new device %s", Prefix)
	}
	d.single = true
	return d, nil
}
