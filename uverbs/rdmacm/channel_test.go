//go:build linux

package rdmacm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/verbs"
)

// channel makes a channel with n IDs over a fake kernel.
func (k *fakeKernel) channel(n int) (*Channel, []*ID) {
	k.t.Helper()
	c, err := k.system().Open()
	must(k.t, err)
	var ids []*ID
	for range n {
		id, err := c.CreateID()
		must(k.t, err)
		ids = append(ids, id)
	}
	return c, ids
}

// event pushes an event to an ID of the fake.
func (k *fakeKernel) event(id *ID, typ EventType) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.push(k.ids[id.handle], typ, 0, &ConnParam{}, nil)
}

// Many wait on one channel: each gets its own events, in order, whoever reads.
func TestManyWait(t *testing.T) {
	k := newFake(t)
	const n, each = 8, 50
	c, ids := k.channel(n)
	errs := make(chan error)
	for _, id := range ids {
		go func() {
			for want := range EventType(each) {
				if e, err := id.Next(t.Context()); err != nil || e.Type != want {
					errs <- errors.Join(err, errors.New("got "+e.Type.String()+", want "+want.String()))
					return
				}
			}
			errs <- nil
		}()
	}
	for typ := range EventType(each) {
		for _, id := range ids {
			if typ == ConnectRequest {
				k.mu.Lock()
				k.push(k.ids[id.handle], typ, 0, &ConnParam{}, &fakeID{})
				k.mu.Unlock()
				continue
			}
			k.event(id, typ)
		}
	}
	for range ids {
		must(t, <-errs)
	}
	for _, id := range ids {
		must(t, id.Close())
	}
	must(t, c.Close())
}

// Waits end with their context, their ID and their channel.
func TestWaitsEnd(t *testing.T) {
	k := newFake(t)
	c, ids := k.channel(3)
	ctx, cancel := context.WithCancel(t.Context())
	ends := []chan error{make(chan error), make(chan error), make(chan error)}
	for i, id := range ids {
		go func() {
			ctx := ctx
			if i > 0 {
				ctx = t.Context()
			}
			_, err := id.Next(ctx)
			ends[i] <- err
		}()
	}
	cancel()
	if err := <-ends[0]; !errors.Is(err, context.Canceled) {
		t.Errorf("context: %v", err)
	}
	must(t, ids[1].Close())
	if err := <-ends[1]; !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("id: %v", err)
	}
	must(t, c.Close())
	if err := <-ends[2]; !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("channel: %v", err)
	}
	if err := c.Close(); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := c.CreateID(); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("on a closed channel: %v", err)
	}
	if err := ids[2].Close(); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("id of a closed channel: %v", err)
	}
}

// The number of events that the kernel reported must be that of those read.
func TestEventsReported(t *testing.T) {
	k := newFake(t)
	c, ids := k.channel(2)
	defer c.Close()
	for _, id := range ids {
		k.event(id, Established)
		k.event(id, Disconnected) // stays in the kernel
		_, err := id.Next(t.Context())
		must(t, err)
	}
	must(t, ids[0].Close())
	k.lie = 1
	if err := ids[1].Close(); err == nil || !strings.Contains(err.Error(), "1 events were read, but the kernel reported 2") {
		t.Errorf("error %v", err)
	}
}

// Requests that nobody can take are destroyed: those of unknown listeners, and those
// beyond what a listener may have waiting.
func TestOrphans(t *testing.T) {
	k := newFake(t)
	c, ids := k.channel(2)
	defer c.Close()
	l, other := ids[0], ids[1]
	request := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.push(k.ids[l.handle], ConnectRequest, 0, &ConnParam{}, &fakeID{})
	}
	// The other one reads for the listener.
	const much = maxQueue + 5
	for range much {
		request()
	}
	k.event(other, Established)
	_, err := other.Next(t.Context())
	must(t, err)
	if len(l.queue) != maxQueue || len(k.ids) != 2+maxQueue {
		t.Errorf("%d requests wait, the kernel has %d ids", len(l.queue), len(k.ids))
	}
	c.mu.Lock()
	delete(c.byUID, l.uid) // as if it were another's
	c.mu.Unlock()
	request()
	k.event(other, Disconnected)
	_, err = other.Next(t.Context())
	must(t, err)
	if len(k.ids) != 2+maxQueue {
		t.Errorf("a stray request is left: %d ids", len(k.ids))
	}
	l.reported++
	must(t, l.Close())
	must(t, other.Close())
	k.leaks()
}

// An event without a cookie is found by the kernel's number.
func TestNoCookie(t *testing.T) {
	k := newFake(t)
	c, ids := k.channel(1)
	b := make([]byte, eventSize)
	eventID.Put(b, ids[0].handle)
	eventEvent.Put(b, uint32(Established))
	c.mu.Lock()
	_, err := c.route(b)
	c.mu.Unlock()
	must(t, err)
	if e, err := ids[0].Next(t.Context()); err != nil || e.Type != Established {
		t.Errorf("event %+v, %v", e, err)
	}
	c.mu.Lock()
	_, err = c.route(b[:100])
	c.mu.Unlock()
	if err == nil {
		t.Error("a short event is not refused")
	}
	must(t, c.Close())
}

// GET_EVENT itself fails.
func TestEventFails(t *testing.T) {
	k := newFake(t)
	s := k.system()
	s.Write = func(fd int, cmd, resp []byte) syscall.Errno {
		if hdrCmd.Get(cmd) == ucmaGetEvent {
			return syscall.EIO
		}
		return k.write(fd, cmd, resp)
	}
	c, err := s.Open()
	must(t, err)
	id, err := c.CreateID()
	must(t, err)
	if _, err := id.Next(t.Context()); !errors.Is(err, verbs.ErrDeviceLost) || !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "get event") {
		t.Errorf("error %v", err)
	}
	must(t, c.Close())
}

// The device of a route: by GUID, among equals by the kernel's number.
func TestRouteDevice(t *testing.T) {
	s := newFake(t).system()
	r := rawRoute{guid: fakeGUID, index: 9}
	if d, err := r.device(s.Verbs); err != nil || d.Name != "rxe7" {
		t.Errorf("device %v, %v", d, err)
	}
	r.guid = 77
	if d, err := r.device(s.Verbs); !errors.Is(err, verbs.ErrNotFound) {
		t.Errorf("device %v, %v", d, err)
	}
	twin := filepath.Join(s.Verbs.SysRoot, "class", "infiniband", "other", "node_guid")
	must(t, os.WriteFile(twin, []byte("0200:0aff:fe09:0001\n"), 0o644))
	r.guid = fakeGUID
	if d, err := r.device(s.Verbs); !errors.Is(err, verbs.ErrNotFound) {
		t.Errorf("of two alike, neither with the number: %v, %v", d, err)
	}
}

func TestABIVersion(t *testing.T) {
	s := newFake(t).system()
	must(t, os.WriteFile(filepath.Join(s.Verbs.SysRoot, "class", "misc", "rdma_cm", "abi_version"), []byte("5\n"), 0o644))
	if _, err := s.Open(); !errors.Is(err, verbs.ErrUnsupported) || !strings.Contains(err.Error(), "version 5") {
		t.Errorf("error %v", err)
	}
}
