package stream_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm/stream"
	"github.com/byteexpress/byteexpress/verbs"
)

// fakeManager joins queue pairs of simulated devices as a connection manager does.
type fakeManager struct {
	mu        sync.Mutex
	listeners map[uint16]*fakeRequests
	device    string // of routes; empty: the right one
	private   []byte // of a peer that is no stream; nil: what the peer sent
	links     []*fakeLink
}

// fakeNet is a Net on a simulated device, whose connections a fake manager makes.
type fakeNet struct {
	*stream.Net
	m    *fakeManager
	ctx  verbs.Context
	name string
	gid  verbs.GIDEntry
}

// wrap puts something around the device.
func (f *fakeNet) wrap(with func(verbs.Context) verbs.Context) {
	f.Net = stream.NewOn(with(f.ctx), deviceManager{f.m, f})
}

// manager is the fake as one device's Net sees it.
type deviceManager struct {
	*fakeManager
	f *fakeNet
}

func newFakeNet(t *testing.T, m *fakeManager, fabric *sim.Fabric, name string) *fakeNet {
	t.Helper()
	dev, err := fabric.NewDevice(name, sim.DeviceConfig{})
	must(t, err)
	ctx, err := dev.Open()
	must(t, err)
	t.Cleanup(func() { must(t, ctx.Close()) }) // fails while anything is left
	gids, err := ctx.GIDs(1)
	must(t, err)
	f := &fakeNet{m: m, ctx: ctx, name: name, gid: gids[1]}
	f.Net = stream.NewOn(ctx, deviceManager{m, f})
	return f
}

// newPair is two devices of one fabric.
func newPair(t *testing.T) (m *fakeManager, a, b *fakeNet) {
	m = &fakeManager{listeners: map[uint16]*fakeRequests{}}
	fabric := sim.NewFabric(sim.Config{})
	t.Cleanup(func() { must(t, fabric.Close()) })
	return m, newFakeNet(t, m, fabric, "a"), newFakeNet(t, m, fabric, "b")
}

// fakeLink is one end.
type fakeLink struct {
	q       qp.QP
	route   rdmacm.Route
	private []byte
	path    qp.Path
	peer    *fakeLink
	once    sync.Once
	ended   chan struct{} // the peer disconnected
	lost    chan error
}

func (l *fakeLink) Route() rdmacm.Route { return l.route }
func (l *fakeLink) Private() []byte     { return l.private }
func (l *fakeLink) Wait(ctx context.Context) error {
	select {
	case <-l.ended:
		return nil
	case err := <-l.lost:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *fakeLink) Close() error {
	if l.q == nil {
		return nil
	}
	if l.peer != nil {
		l.once.Do(func() { close(l.peer.ended) })
	}
	return l.q.Close()
}

func (m deviceManager) newLink(o rdmacm.Options, local, remote netip.AddrPort) (*fakeLink, error) {
	name := m.f.name
	m.mu.Lock()
	if m.device != "" {
		name = m.device
	}
	m.mu.Unlock()
	l := &fakeLink{
		route: rdmacm.Route{Local: local, Remote: remote, Device: uverbs.Device{Name: name}, Port: 1, SGID: m.f.gid.GID},
		ended: make(chan struct{}), lost: make(chan error, 1),
	}
	m.mu.Lock()
	m.links = append(m.links, l)
	m.mu.Unlock()
	q, err := o.MakeQP(context.Background(), l.route)
	if err != nil {
		return nil, err
	}
	l.q = q
	l.path = qp.Path{SGIDIndex: uint8(m.f.gid.Index), Access: mr.LocalWrite, MTU: qp.MTU1024, Global: true}
	if err = l.path.ToInit(q); err == nil {
		err = o.Ready(q)
	}
	return l, err
}

// up takes an end to RTS.
func (l *fakeLink) up(peer *fakeLink, private []byte) error {
	l.peer, l.private = peer, private
	l.path.DestNum, l.path.DGID = peer.q.Num(), peer.route.SGID
	if err := l.path.ToRTR(l.q); err != nil {
		return err
	}
	return l.path.ToRTS(l.q)
}

func (m deviceManager) Dial(ctx context.Context, addr netip.AddrPort, o rdmacm.Options) (stream.Link, error) {
	m.mu.Lock()
	from := m.listeners[addr.Port()]
	m.mu.Unlock()
	if from == nil {
		return nil, rdmacm.ReasonInvalidServiceID
	}
	l, err := m.newLink(o, netip.MustParseAddrPort("10.0.0.2:4000"), addr)
	if err != nil {
		return nil, err
	}
	r := &fakeRequest{from: from, active: l, private: o.Private, answer: make(chan error, 1)}
	select {
	case from.queue <- r:
	case <-ctx.Done():
		l.Close()
		return nil, ctx.Err()
	}
	select {
	case err = <-r.answer:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (m deviceManager) Listen(addr netip.AddrPort) (stream.Requests, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if addr.Port() == 0 {
		addr = netip.AddrPortFrom(addr.Addr(), uint16(5000+len(m.listeners)))
	}
	r := &fakeRequests{m: m, addr: addr, queue: make(chan *fakeRequest, 512), closed: make(chan struct{})}
	m.listeners[addr.Port()] = r
	return r, nil
}

type fakeRequests struct {
	m      deviceManager
	addr   netip.AddrPort
	queue  chan *fakeRequest
	closed chan struct{}
}

func (r *fakeRequests) Addr() netip.AddrPort { return r.addr }
func (r *fakeRequests) Close() error {
	r.m.mu.Lock()
	delete(r.m.listeners, r.addr.Port())
	r.m.mu.Unlock()
	close(r.closed)
	for len(r.queue) > 0 {
		_ = (<-r.queue).Reject(nil)
	}
	return nil
}

func (r *fakeRequests) Next(ctx context.Context) (stream.Request, error) {
	select {
	case q := <-r.queue:
		return q, nil
	case <-r.closed:
		return nil, verbs.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type fakeRequest struct {
	from    *fakeRequests
	active  *fakeLink
	private []byte
	answer  chan error
}

func (r *fakeRequest) Accept(_ context.Context, o rdmacm.Options) (stream.Link, error) {
	l, err := r.from.m.newLink(o, r.from.addr, r.active.route.Local)
	if err == nil {
		private := r.private
		r.from.m.mu.Lock()
		if r.from.m.private != nil {
			private = r.from.m.private
		}
		r.from.m.mu.Unlock()
		err = errors.Join(l.up(r.active, private), r.active.up(l, o.Private))
	}
	r.answer <- err
	if err != nil {
		if l != nil {
			_ = l.Close()
		}
		return nil, err
	}
	return l, nil
}

func (r *fakeRequest) Reject([]byte) error {
	r.answer <- rdmacm.ReasonConsumer
	return nil
}

// pretend changes what routes and peers say.
func (m *fakeManager) pretend(device string, private []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.device, m.private = device, private
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
