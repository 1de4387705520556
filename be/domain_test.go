package be_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

const (
	local    = mr.LocalWrite
	writable = mr.LocalWrite | mr.RemoteWrite
	readable = mr.LocalWrite | mr.RemoteRead
)

// registered is a device context that remembers what is registered, and how.
type registered struct {
	verbs.Context
	mu   sync.Mutex
	live map[mr.Region]mr.Access
	all  map[mr.Access]int // registrations ever
}

type registeredPD struct {
	verbs.PD
	r *registered
}

func (r *registered) AllocPD() (verbs.PD, error) {
	pd, err := r.Context.AllocPD()
	return registeredPD{pd, r}, err
}

func (p registeredPD) Register(b []byte, a mr.Access) (mr.Region, error) {
	region, err := p.PD.Register(b, a)
	if err == nil {
		p.r.mu.Lock()
		p.r.live[region] = a
		p.r.all[a]++
		p.r.mu.Unlock()
	}
	return region, err
}

func (p registeredPD) Deregister(region mr.Region) error {
	p.r.mu.Lock()
	delete(p.r.live, region)
	p.r.mu.Unlock()
	return p.PD.Deregister(region)
}

// of gives the regions that a buffer lies in, by their rights.
func (r *registered) of(b []byte) map[mr.Access]mr.Region {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := map[mr.Access]mr.Region{}
	for region, a := range r.live {
		if region.Contains(mr.Addr(b), uint64(len(b))) {
			m[a] = region
		}
	}
	return m
}

// exposed has one buffer of each kind in a node's memory.
type exposed struct {
	*registered
	pair           *pair
	server, client *be.Socket
	pub            *be.Publication
	bufs           map[string][]byte // by kind
	keys           map[string]mr.Region
}

const exposedBytes = 100_000

// newExposed makes two nodes that have exchanged messages of every kind: what the first
// one has of them stays in its application's hands.
func newExposed(t *testing.T) *exposed {
	t.Helper()
	f := sim.NewFabric(sim.Config{})
	dev, err := f.NewDevice("sim0", sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	x := &exposed{registered: &registered{Context: ctx, live: map[mr.Region]mr.Access{}, all: map[mr.Access]int{}}, pair: &pair{fabric: f}}
	x.pair.nodes[0] = nodeIn(t, x.registered, be.Config{})
	x.pair.devs[1], x.pair.nodes[1] = newNode(t, f, "sim1", be.Config{})
	if x.pair.listener, err = x.pair.nodes[0].Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if s := x.pair.nodes[0].Stats(); s.Registered != (be.Registered{}) {
		t.Errorf("before any engine: %+v", s.Registered)
	}
	x.server, x.client = x.pair.connect(t, "exposed")
	n := x.pair.nodes[0]
	x.bufs = map[string][]byte{"to send": alloc(t, n, exposedBytes, 1), "short": x.receive(t, 64)}
	if s := n.Stats(); s.Registered.Local == 0 || s.Registered.Writable+s.Registered.Readable != 0 {
		t.Errorf("before any large message: %+v", s.Registered)
	}
	x.bufs["received"] = x.receive(t, exposedBytes)
	if err := x.client.SetGet(true); err != nil {
		t.Fatal(err)
	}
	x.bufs["read"] = x.receive(t, exposedBytes)
	x.bufs["for one"] = alloc(t, n, exposedBytes, 2)
	if x.pub, err = x.server.Publish(x.bufs["for one"]); err != nil {
		t.Fatal(err)
	}
	if err := x.server.SetGet(true); err != nil {
		t.Fatal(err)
	}
	x.bufs["offered"] = alloc(t, n, exposedBytes, 3)
	x.bufs["still short"] = alloc(t, n, 8<<10, 4)
	x.keys = map[string]mr.Region{
		"local": x.of(x.bufs["to send"])[local], "writable": x.of(x.bufs["received"])[writable],
		"readable": x.of(x.bufs["offered"])[readable], "published": x.of(x.bufs["for one"])[writable],
	}
	return x
}

// receive has the peer send n bytes.
func (x *exposed) receive(t *testing.T, n int) []byte {
	t.Helper()
	b := alloc(t, x.pair.nodes[1], n, 5)
	if err := x.client.Send(limit(t), b); err != nil {
		t.Fatal(err)
	}
	x.pair.nodes[1].Free(b)
	m, err := x.server.Recv(limit(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// end frees all and closes the socket.
func (x *exposed) end() {
	x.client.Close()
	<-x.pub.Done()
	for _, b := range x.bufs {
		x.pair.nodes[0].Free(b)
	}
}

// TestKeyDomains: each kind of buffer is registered for what it takes and nothing
// more. What is to be sent, or came by SEND or READ, no peer has a key to.
func TestKeyDomains(t *testing.T) {
	x := newExposed(t)
	for kind, want := range map[string][]mr.Access{
		"to send": {local}, "short": {local}, "still short": {local}, "read": {local}, "received": {writable}, "offered": {readable},
		"for one": {local, writable}, // in its block, and alone
	} {
		got := x.of(x.bufs[kind])
		for _, a := range want {
			if _, ok := got[a]; !ok || len(got) != len(want) {
				t.Errorf("%q lies in %v, want %v", kind, got, want)
			}
		}
	}
	if k := x.keys["published"]; k.Addr != mr.Addr(x.bufs["for one"]) || k.Length != exposedBytes {
		t.Errorf("the key of the published buffer is for %v, the buffer is at %#x", k, mr.Addr(x.bufs["for one"]))
	}
	if st := x.pair.nodes[1].Stats(); st.Offered != 1 || st.Rendezvous != 1 {
		t.Errorf("%d messages were read and %d written, want 1 and 1", st.Offered, st.Rendezvous)
	}
	// A buffer that came from a peer, or is from before, is sent all the same: written.
	for _, kind := range []string{"received", "to send", "offered"} {
		if err := x.server.Send(limit(t), x.bufs[kind]); err != nil {
			t.Fatal(err)
		}
		m, err := x.client.Recv(limit(t))
		if err != nil || !bytes.Equal(m, x.bufs[kind]) {
			t.Errorf("%q was received as other bytes, %v", kind, err)
		}
		x.pair.nodes[1].Free(m)
	}
	if st := x.pair.nodes[0].Stats(); st.Offered != 1 || st.Rendezvous != 2 {
		t.Errorf("%d messages were read and %d written, want 1 and 2", st.Offered, st.Rendezvous)
	}
	s := x.pair.nodes[0].Stats()
	if r := s.Registered; r.Local == 0 || r.Writable == 0 || r.Readable == 0 || r.Local+r.Writable+r.Readable != s.Memory.RegisteredBytes {
		t.Errorf("%+v of %d bytes", r, s.Memory.RegisteredBytes)
	}
	if n := len(x.all); n != 3 {
		t.Errorf("rights that were ever registered: %v", x.all)
	}
	b := x.bufs["for one"]
	r := newRawPeer(t, x.pair.fabric, "raw", x.pair.listener.Addr().String(), "publish")
	x.end()
	if got := x.of(b); len(got) != 1 {
		t.Errorf("after the publication, its buffer lies in %v", got)
	}
	if st := r.reach(qp.Write, mr.Addr(b), x.keys["published"].RKey, 64); st != cq.RemoteAccessError {
		t.Errorf("write to what was published: %v", st)
	}
}

// TestHostileKeys: a peer that has every key, those it is given and those it guesses,
// reaches by each what that key is for, and nothing else: neither what is to be sent,
// nor what others were sent in short.
func TestHostileKeys(t *testing.T) {
	x := newExposed(t)
	defer x.end()
	allowed := map[string]bool{"WRITE received by writable": true, "READ offered by readable": true, "WRITE for one by published": true}
	names, tried := map[qp.Opcode]string{qp.Read: "READ", qp.Write: "WRITE"}, 0
	for op, verb := range names {
		for kind, b := range x.bufs {
			for name, key := range x.keys {
				what := fmt.Sprintf("%s %s by %s", verb, kind, name)
				r := newRawPeer(t, x.pair.fabric, fmt.Sprintf("raw%d", tried), x.pair.listener.Addr().String(), "get", "publish")
				tried++
				fill(r.reached()[:64], byte(100+tried))
				before := bytes.Clone(b)
				status, want := r.reach(op, mr.Addr(b), key.RKey, 64), cq.RemoteAccessError
				if allowed[what] {
					want = cq.Success
				}
				if status != want {
					t.Errorf("%s: %v, want %v", what, status, want)
				}
				changed := !bytes.Equal(b, before)
				if changed != (allowed[what] && op == qp.Write) {
					t.Errorf("%s: changed the buffer: %v", what, changed)
				}
				if read := op == qp.Read && bytes.Equal(r.reached()[:64], b[:64]); read != (allowed[what] && op == qp.Read) {
					t.Errorf("%s: read the buffer: %v", what, read)
				}
				r.tcp.Close()
				eventually(t, "engine gone", func() bool { return x.pair.nodes[0].Stats().Engines == 1 })
			}
		}
	}
	if want := 2 * len(x.bufs) * len(x.keys); tried != want {
		t.Errorf("%d tries, want %d", tried, want)
	}
}

// TestGrantedKey: the key that a peer is told to write a message with is of the
// writable domain, and so opens no message that is to be sent.
func TestGrantedKey(t *testing.T) {
	x := newExposed(t)
	defer x.end()
	r := newRawPeer(t, x.pair.fabric, "raw0", x.pair.listener.Addr().String())
	r.send(control(1, 64, 1, 0, 1, 0, 0, 0, 'x'))            // OPEN
	r.send(control(5, 64, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0))     // RTS of 64 KiB
	r.wait(func(c *cq.Completion) bool { return c.ID == 1 }) // after ACCEPT
	m := r.received(1)
	addr, key := binary.LittleEndian.Uint64(m[20:]), mr.RKey(binary.LittleEndian.Uint32(m[28:]))
	if m[0] != 6 || key != x.keys["writable"].RKey {
		t.Fatalf("not CTS with a key of the writable domain: type %d, key %#x at %#x, that of the writable domain is %#x", m[0], key, addr, x.keys["writable"].RKey)
	}
	if st := r.reach(qp.Write, addr, key, 64); st != cq.Success {
		t.Errorf("write where it was granted: %v", st)
	}
	b := x.bufs["to send"]
	before := bytes.Clone(b)
	if st := r.reach(qp.Write, mr.Addr(b), key, 64); st != cq.RemoteAccessError || !bytes.Equal(b, before) {
		t.Errorf("write to what is to be sent: %v", st)
	}
}
